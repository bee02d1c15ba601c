import type { Memento } from "vscode";

/** A prompt that is written and not sent. VS Code writes the state of a page seldom; this at once. */
export class Draft {
  /** `key`: of the place where it is written. */
  constructor(
    private readonly memory: Memento,
    private readonly key: string,
  ) {}

  get text(): string {
    return this.memory.get(this.key, "");
  }

  async write(text: string): Promise<void> {
    await this.memory.update(this.key, text || undefined);
  }
}
