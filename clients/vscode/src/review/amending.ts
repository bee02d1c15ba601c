import * as vscode from "vscode";
import { sentence, tell } from "../commands";
import type { ReviewFile, ReviewHunk } from "../wire/generated";
import type { Deciding } from "./deciding";
import { isOfLines } from "./hunks";
import type { Place, Targets } from "./targets";

const SCHEME = "magy-amend";

interface Amendment {
  file: ReviewFile;
  hunk: ReviewHunk;
  text: Uint8Array;
  changed: number;
}

/**
 * The new lines of a change as a small file of its own. To save it by hand puts it into the file
 * that it is about; what an editor saves by itself is only kept.
 */
export class Amending implements vscode.FileSystemProvider, vscode.Disposable {
  private readonly open = new Map<string, Amendment>();
  /** Those that are in the file already: to save them is nothing more. */
  private readonly finished = new Set<string>();
  private readonly changed = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  private readonly disposables: vscode.Disposable[];
  readonly onDidChangeFile = this.changed.event;

  constructor(
    private readonly targets: Targets,
    private readonly deciding: Deciding,
  ) {
    this.disposables = [
      this.changed,
      vscode.workspace.registerFileSystemProvider(SCHEME, this, { isCaseSensitive: true }),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => this.open.delete(uri.toString())),
      vscode.workspace.onWillSaveTextDocument(({ document, reason }) => {
        const manual = reason === vscode.TextDocumentSaveReason.Manual;
        if (document.uri.scheme !== SCHEME || !manual || this.finished.has(document.uri.toString())) return;
        void this.done(document).catch((error: unknown) => tell("error", sentence(error)));
      }),
    ];
  }

  dispose(): void {
    vscode.Disposable.from(...this.disposables).dispose();
  }

  async begin(place: Place): Promise<void> {
    const [chosen] = await this.targets.hunks(place);
    const id = chosen && "hunkIds" in chosen.which ? chosen.which.hunkIds[0] : undefined;
    const hunk = chosen?.file.hunks.find((one) => one.hunkId === id);
    if (!chosen || !hunk) throw new Error("Put the cursor into one change, without a selection.");
    if (!isOfLines(hunk)) throw new Error("Only lines can be amended. Accept or reject this.");
    const uri = amendmentOf(vscode.Uri.parse(chosen.file.uri), hunk.hunkId);
    const text = new TextEncoder().encode(hunk.newText);
    this.open.set(uri.toString(), { file: chosen.file, hunk, text, changed: Date.now() });
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside });
    vscode.window.setStatusBarMessage("$(edit) Save to put these lines into the file", 8_000);
  }

  /** Puts the lines into the file; if the change has become another one, they stay here. */
  async done(document: vscode.TextDocument | undefined): Promise<void> {
    const amendment = document && this.open.get(document.uri.toString());
    if (!document || !amendment) throw new Error("This is no change that is being amended.");
    const text = ended(document.getText(), amendment.hunk.newText);
    if (!(await this.deciding.amend(amendment.file, amendment.hunk.hunkId, text))) return;
    this.open.set(document.uri.toString(), { ...amendment, text: new TextEncoder().encode(text) });
    await this.finish(document);
  }

  private async finish(document: vscode.TextDocument): Promise<void> {
    const key = document.uri.toString();
    this.finished.add(key);
    try {
      if (document.isDirty) await document.save();
      await closeTabs(document.uri);
    } finally {
      this.finished.delete(key);
    }
  }

  async giveUp(document: vscode.TextDocument | undefined): Promise<void> {
    if (document?.uri.scheme !== SCHEME) return;
    await this.finish(document);
  }

  stat(uri: vscode.Uri): vscode.FileStat {
    const { text, changed } = this.known(uri);
    return { type: vscode.FileType.File, ctime: 0, mtime: changed, size: text.length };
  }

  readFile(uri: vscode.Uri): Uint8Array {
    return this.known(uri).text;
  }

  writeFile(uri: vscode.Uri, text: Uint8Array): void {
    this.open.set(uri.toString(), { ...this.known(uri), text, changed: Date.now() });
  }

  watch(): vscode.Disposable {
    return new vscode.Disposable(() => undefined);
  }

  readDirectory(): never {
    throw vscode.FileSystemError.NoPermissions();
  }

  createDirectory(): never {
    throw vscode.FileSystemError.NoPermissions();
  }

  delete(): never {
    throw vscode.FileSystemError.NoPermissions();
  }

  rename(): never {
    throw vscode.FileSystemError.NoPermissions();
  }

  private known(uri: vscode.Uri): Amendment {
    const found = this.open.get(uri.toString());
    if (!found) throw vscode.FileSystemError.FileNotFound(uri);
    return found;
  }
}

/** The document in which a change is amended: its tab says so, and its name ends as the file's. */
function amendmentOf(file: vscode.Uri, hunkId: string): vscode.Uri {
  const at = file.path.lastIndexOf("/") + 1;
  const path = `${file.path.slice(0, at)}Amend ${file.path.slice(at)}`;
  return file.with({ scheme: SCHEME, path, query: hunkId });
}

/** A text that stands in the place of another: with a line end, unless that had none. */
export function ended(text: string, before: string): string {
  const needs = text !== "" && !text.endsWith("\n") && (before === "" || before.endsWith("\n"));
  return needs ? `${text}\n` : text;
}

async function closeTabs(uri: vscode.Uri): Promise<void> {
  const tabs = vscode.window.tabGroups.all
    .flatMap((group) => group.tabs)
    .filter((tab) => tab.input instanceof vscode.TabInputText && same(tab.input.uri, uri));
  await vscode.window.tabGroups.close(tabs);
}

function same(one: vscode.Uri, other: vscode.Uri): boolean {
  return one.toString() === other.toString();
}
