import type { Memento } from "vscode";
import type { Left } from "./messages";

/** What a person left in a page. VS Code writes the state of a page seldom; this at once. */
export class Remembered {
  /** `key`: of the place where the page is. */
  constructor(
    private readonly memory: Memento,
    private readonly key: string,
  ) {}

  get left(): Left | undefined {
    return this.memory.get(this.key);
  }

  async write(left: Left): Promise<void> {
    await this.memory.update(this.key, left.text || left.anchor ? left : undefined);
  }
}
