import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import { tell } from "../commands";
import type { Magy } from "../magy";
import type { CheckpointPreview, CheckpointRestored } from "../wire/generated";
import { changes, paramsOf, previewText, titleOf, type Wanted } from "./turns";

const SCHEME = "magy-undo";

interface Shown {
  wanted: Wanted;
  preview: CheckpointPreview;
}

/** A document that shows what going back would change; the buttons above it do it. */
export class Previews implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly shown = new Map<string, Shown>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly disposables: vscode.Disposable[];
  readonly onDidChange = this.changed.event;

  constructor(private readonly magy: Magy) {
    this.disposables = [
      this.changed,
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.window.tabGroups.onDidChangeTabs(({ closed }) => {
        for (const { input } of closed) {
          if (input instanceof vscode.TabInputText) this.shown.delete(input.uri.toString());
        }
      }),
    ];
  }

  dispose(): void {
    vscode.Disposable.from(...this.disposables).dispose();
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    const shown = this.shown.get(uri.toString());
    const name = (path: string) => vscode.workspace.asRelativePath(path);
    return shown ? previewText(shown.wanted, shown.preview, name) : "# This preview is over.\n";
  }

  /** Asks what would change, and shows it. Throws with the server's sentence if it cannot be. */
  async show(wanted: Wanted): Promise<void> {
    const preview = await this.magy.connection.request("magy/checkpoint/preview", paramsOf(wanted));
    const title = titleOf(wanted, preview.turns.length).replaceAll("/", "∕").replace(/\.+$/, "");
    // The name says that it is a diff.
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${title}.diff`, query: wanted.sessionId });
    this.put(uri, { wanted, preview });
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri));
  }

  async toggle(part: "files" | "conversation", uri: vscode.Uri | undefined): Promise<void> {
    const { key, shown } = this.of(uri);
    const wanted = { ...shown.wanted, [part]: !shown.wanted[part] };
    if (!wanted.files && !wanted.conversation) throw new Error("Nothing would be undone then.");
    const preview = await this.magy.connection.request("magy/checkpoint/preview", paramsOf(wanted));
    this.put(key, { wanted, preview });
  }

  async confirm(uri: vscode.Uri | undefined): Promise<CheckpointRestored> {
    const { key, shown } = this.of(uri);
    const result = await this.magy.connection.request("magy/checkpoint/restore", {
      ...paramsOf(shown.wanted),
      requestKey: randomUUID(),
    });
    await this.close(key);
    this.say(shown.wanted, result);
    const { wanted } = shown;
    // What was said is in the input then, to be said otherwise.
    if (result.conversation && !wanted.undoes && wanted.sessionId === this.magy.sessions.current) {
      await vscode.commands.executeCommand("magy.offerPrompt", { text: result.prompt, turnId: wanted.turnId ?? "" });
    }
    return result;
  }

  async close(uri: vscode.Uri | undefined): Promise<void> {
    const key = (uri ?? vscode.window.activeTextEditor?.document.uri)?.toString();
    const tabs = vscode.window.tabGroups.all
      .flatMap((group) => group.tabs)
      .filter((tab) => tab.input instanceof vscode.TabInputText && tab.input.uri.toString() === key);
    await vscode.window.tabGroups.close(tabs);
  }

  private put(uri: vscode.Uri, shown: Shown): void {
    this.shown.set(uri.toString(), shown);
    this.changed.fire(uri);
  }

  private of(uri: vscode.Uri | undefined): { key: vscode.Uri; shown: Shown } {
    const key = uri ?? vscode.window.activeTextEditor?.document.uri;
    const shown = key && this.shown.get(key.toString());
    if (!key || !shown) throw new Error("This shows no turn that could be undone.");
    return { key, shown };
  }

  private say(wanted: Wanted, result: CheckpointRestored): void {
    const left = result.files.filter((file) => file.conflict !== "");
    const done = result.files.filter(changes).length;
    const conversation = result.conversation ? " and the conversation" : "";
    const word = wanted.undoes ? "Redone" : "Undone";
    const text = `${word}: ${done === 1 ? "1 file" : `${done} files`}${conversation}.`;
    const names = left.map((file) => vscode.workspace.asRelativePath(file.path)).join(", ");
    const redo = wanted.undoes ? [] : [{ title: "Redo", command: "magy.undo.redoTurn" }];
    void tell(left.length ? "warning" : "info", names ? `${text} Left alone: ${names}.` : text, ...redo);
  }
}
