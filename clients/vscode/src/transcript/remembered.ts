import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { ExtensionContext } from "vscode";
import { workspace } from "vscode";
import type { Left } from "./messages";

/**
 * What a person left in a page, in a file of its own. A window that is closed or loaded anew gives no notice, and its
 * own memory reaches the disk only after a while: so each change is written before anything else is done.
 */
export class Remembered {
  private readonly file: string;

  /**
   * `place`: of the page. What is left there in this folder outlives the window. VS Code's own storage for a folder
   * does not: while a window that is loaded anew still lets go of it, the next one is given another.
   */
  constructor(context: Pick<ExtensionContext, "globalStorageUri">, place: string) {
    const opened = workspace.workspaceFile ?? workspace.workspaceFolders?.[0]?.uri;
    const folder = createHash("sha256").update(opened?.toString() ?? "").digest("hex").slice(0, 16);
    this.file = join(context.globalStorageUri.fsPath, "left", folder, `${encodeURIComponent(place)}.json`);
  }

  get left(): Left | undefined {
    try {
      return JSON.parse(readFileSync(this.file, "utf8")) as Left;
    } catch {
      return undefined; // nothing was left, or what was cannot be read
    }
  }

  write(left: Left): void {
    if (!left.text && !left.anchor) return rmSync(this.file, { force: true });
    mkdirSync(dirname(this.file), { recursive: true });
    const half = `${this.file}.${process.pid}`;
    writeFileSync(half, JSON.stringify(left));
    renameSync(half, this.file);
  }
}
