import * as vscode from "vscode";
import type { Connection } from "../connection";
import type { Notifications, ReviewEntry, ReviewFile } from "../wire/generated";
import { isOfLines, isProposed } from "./hunks";

/** Times that hunks are asked for again while the person types on. */
const TRIES = 6;
/** Milliseconds for which a file is left alone by other programs before it is looked at again. */
const REST = 200;

/** What is under review, as the server says it. Hunks are asked for by who shows them. */
export class Reviews implements vscode.Disposable {
  private entries = new Map<string, ReviewEntry[]>();
  private readonly held = new Map<string, { state: string; files: Promise<ReviewFile[] | undefined> }>();
  private readonly changed = new vscode.EventEmitter<ReadonlySet<string> | undefined>();
  private readonly looking = new Map<string, NodeJS.Timeout>();
  private readonly disposables: vscode.Disposable[] = [this.changed];

  /** Fires with the keys (`keyOf`) of the files whose review has changed; undefined: all. */
  readonly onDidChange = this.changed.event;

  constructor(
    private readonly connection: Connection,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.disposables.push(
      connection.on("magy/review/changed", (news) => this.hear(news)),
      connection.onDidChangeState((state) => {
        if (state === "running") void this.learn();
        else if (state !== "silent") this.forget();
      }),
    );
    const files = vscode.workspace.createFileSystemWatcher("**/*");
    const events = [files.onDidCreate, files.onDidChange, files.onDidDelete];
    this.disposables.push(files, ...events.map((event) => event((uri) => this.moved(uri))));
    if (connection.state === "running") void this.learn();
  }

  dispose(): void {
    for (const timer of this.looking.values()) clearTimeout(timer);
    vscode.Disposable.from(...this.disposables).dispose();
  }

  /** All files in which something waits for a decision, by path. */
  get all(): ReviewEntry[] {
    return [...this.entries.values()].flat().sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  /** How many changes, in how many files, wait for a decision. */
  get sum(): { changes: number; files: number } {
    const all = this.all;
    return { changes: all.reduce((sum, entry) => sum + entry.pending, 0), files: this.entries.size };
  }

  /** What is known of a file: applied, proposed, or both. */
  of(uri: vscode.Uri): readonly ReviewEntry[] {
    return this.entries.get(keyOf(uri)) ?? [];
  }

  /** Asks for the hunks of one file. undefined: nothing is left of it. */
  async get(entry: { uri: string; mode: string }): Promise<ReviewFile | undefined> {
    const params = { uri: entry.uri, proposed: isProposed(entry) };
    return (await this.connection.request("magy/review/get", params)).file ?? undefined;
  }

  /**
   * The hunks of a document, applied and proposed, with places in its text as it is when this
   * returns. undefined: the person types on, and the places cannot be said.
   */
  async in(document: vscode.TextDocument): Promise<ReviewFile[] | undefined> {
    for (let tried = 0; tried < TRIES && !document.isClosed; tried++) {
      const state = this.state(document);
      const files = await this.asked(document.uri, state);
      if (!files) return undefined;
      // A decision or a keystroke may have come in between.
      const current = state === this.state(document);
      if (current && files.every((file) => placed(file, document))) return files;
      if (!current) continue;
      this.held.delete(keyOf(document.uri));
      await new Promise((resolve) => setTimeout(resolve, 30 * 2 ** tried));
    }
    return undefined;
  }

  private state(document: vscode.TextDocument): string {
    return [document.version, ...this.of(document.uri).map((one) => one.revision)].join("\n");
  }

  private asked(uri: vscode.Uri, state: string): Promise<ReviewFile[] | undefined> {
    const held = this.held.get(keyOf(uri));
    if (held?.state === state) return held.files;
    const files = this.askedAnew(this.of(uri));
    this.held.set(keyOf(uri), { state, files });
    return files;
  }

  private async askedAnew(entries: readonly ReviewEntry[]): Promise<ReviewFile[] | undefined> {
    try {
      const found = await Promise.all(entries.map((entry) => this.get(entry)));
      return found.filter((file) => file !== undefined);
    } catch (error) {
      this.log.warn(`The review of ${entries[0]?.path} cannot be shown: ${String(error)}`);
      return undefined;
    }
  }

  private hear(news: Notifications["magy/review/changed"]): void {
    const keys = new Set(news.files.map((file) => keyOf(vscode.Uri.parse(file.uri))));
    for (const key of keys) {
      this.entries.delete(key);
      this.held.delete(key);
    }
    this.put(news.files);
    this.changed.fire(keys);
  }

  private put(files: readonly ReviewEntry[]): void {
    for (const file of files.filter((one) => one.pending > 0)) {
      const key = keyOf(vscode.Uri.parse(file.uri));
      const others = (this.entries.get(key) ?? []).filter((one) => one.mode !== file.mode);
      this.entries.set(key, [...others, file]);
    }
  }

  /** A file was written or deleted, perhaps by a program that nobody tells Magy of. */
  private moved(uri: vscode.Uri): void {
    const key = keyOf(uri);
    if (!this.entries.has(key)) return;
    clearTimeout(this.looking.get(key));
    this.looking.set(key, setTimeout(() => void this.lookAgain(key), REST));
  }

  private async lookAgain(key: string): Promise<void> {
    this.looking.delete(key);
    const known = this.entries.get(key);
    if (!known || this.connection.state !== "running") return;
    const found = await this.askedAnew(known);
    // What the server told meanwhile is newer.
    if (!found || this.entries.get(key) !== known) return;
    if (found.length === known.length && found.every((file, at) => file.revision === known[at]?.revision)) return;
    this.entries.delete(key);
    this.held.delete(key);
    this.put(known.flatMap((entry) => found.filter((file) => file.mode === entry.mode).map((file) => seen(entry, file))));
    this.changed.fire(new Set([key]));
  }

  private async learn(): Promise<void> {
    try {
      let cursor: string | null = null;
      do {
        const page: { files: ReviewEntry[]; nextCursor: string | null } =
          await this.connection.request("magy/review/list", { limit: 500, cursor });
        this.put(page.files);
        cursor = page.nextCursor;
      } while (cursor);
      this.changed.fire(undefined);
    } catch (error) {
      this.log.warn(`The list of what is under review cannot be read: ${String(error)}`);
    }
  }

  /** Nothing is shown that may be wrong by now. */
  private forget(): void {
    if (this.entries.size === 0) return;
    this.entries = new Map();
    this.held.clear();
    this.changed.fire(undefined);
  }
}

/** An entry of the list as the file itself is now. */
function seen(entry: ReviewEntry, { status, revision, added, removed, hunks }: ReviewFile): ReviewEntry {
  return { ...entry, status, revision, added, removed, pending: hunks.length };
}

/** What a file is known by, however its URI is written. */
function keyOf(uri: vscode.Uri): string {
  return uri.toString();
}

/** Whether the places of its hunks are those of the document now; a file as a whole has none. */
function placed(file: ReviewFile, document: vscode.TextDocument): boolean {
  return file.docVersion === document.version || !file.hunks.some(isOfLines);
}

/** The file that a document is about: what it was, what is proposed, and nothing have its path. */
export function fileOf(uri: vscode.Uri): vscode.Uri {
  const side = uri.scheme === "magy" || uri.scheme === "magy-nothing";
  return side ? vscode.Uri.file(uri.path) : uri;
}

/** What the tab in front shows, also if that is no text. */
export function shownUri(): vscode.Uri | undefined {
  const input = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
  if (input instanceof vscode.TabInputTextDiff) return input.modified;
  return input instanceof vscode.TabInputText || input instanceof vscode.TabInputCustom ? input.uri : undefined;
}
