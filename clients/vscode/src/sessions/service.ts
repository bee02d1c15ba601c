import { randomUUID } from "node:crypto";
import { basename } from "node:path";
import * as vscode from "vscode";
import type { Connection } from "../connection";
import type { SessionListener, Sessions } from "../magy";
import type { AnyUpdate, SubscribeResult, Summary } from "../wire/generated";
import { Subscriptions } from "./subscriptions";
import { updated } from "./summary";

const CURRENT = "magy.session";

type Beginning = NonNullable<Parameters<Sessions["create"]>[0]>;

/** The sessions of this window; the current one is remembered for the folder. */
export class WindowSessions implements Sessions, vscode.Disposable {
  private readonly subscriptions: Subscriptions;
  private readonly changedCurrent = new vscode.EventEmitter<string | undefined>();
  private readonly changedSummary = new vscode.EventEmitter<Summary | undefined>();
  private readonly visible = new Map<object, string>();
  private shown: string | undefined;
  private seen: Summary | undefined;
  private watching: { dispose(): void } | undefined;
  private making: Promise<string> | undefined;

  readonly onDidChangeCurrent = this.changedCurrent.event;
  readonly onDidChangeSummary = this.changedSummary.event;

  constructor(
    private readonly connection: Connection,
    private readonly memory: vscode.Memento,
  ) {
    this.subscriptions = new Subscriptions(connection, (id) => id === this.shown);
    this.shown = memory.get<string>(CURRENT);
    connection.onDidChangeState((state) => {
      if (state === "running" && this.shown && !this.watching) this.watch(this.shown);
    });
  }

  get current(): string | undefined {
    return this.shown;
  }

  get summary(): Summary | undefined {
    return this.seen;
  }

  show(sessionId: string): void {
    if (sessionId !== this.shown) this.become(sessionId);
  }

  async ensure(): Promise<string> {
    return this.making ?? this.shown ?? this.create();
  }

  create(options: Beginning = {}): Promise<string> {
    const making = this.make(options).finally(() => {
      if (this.making === making) this.making = undefined;
    });
    this.making = making;
    return making;
  }

  subscribe(sessionId: string, listener: SessionListener): vscode.Disposable {
    const subscription = this.subscriptions.add(sessionId, listener);
    return new vscode.Disposable(() => subscription.dispose());
  }

  see(transcript: object, sessionId: string | undefined): void {
    if (sessionId === undefined) this.visible.delete(transcript);
    else this.visible.set(transcript, sessionId);
  }

  inSight(sessionId: string): boolean {
    return [...this.visible.values()].some((seen) => sessionId === seen || sessionId.startsWith(`${seen}/`));
  }

  /** Forgets the current session: it was deleted, or closed by the person. */
  leave(sessionId: string): void {
    if (sessionId === this.shown) this.become(undefined);
  }

  dispose(): void {
    this.watching?.dispose();
    this.changedCurrent.dispose();
    this.changedSummary.dispose();
  }

  private async make(options: Beginning): Promise<string> {
    const cwd = options.cwd ?? (await folderOfNew())?.uri.fsPath;
    const sessionId = `vscode-${randomUUID()}`;
    await this.connection.request("magy/session/new", { ...options, cwd, sessionId });
    if (vscode.workspace.getConfiguration("magy").get("bypassPermission", false)) {
      const on = { sessionId, configId: "bypass" as const, value: "on" };
      await this.connection.request("magy/session/set_config_option", on);
    }
    this.show(sessionId);
    return sessionId;
  }

  private become(sessionId: string | undefined): void {
    this.watching?.dispose();
    this.watching = undefined;
    this.shown = sessionId;
    void this.memory.update(CURRENT, sessionId);
    this.say(undefined);
    this.changedCurrent.fire(sessionId);
    if (sessionId) this.watch(sessionId);
  }

  private watch(sessionId: string): void {
    this.watching = this.subscriptions.add(sessionId, {
      page: (page: SubscribeResult) => this.say(page.summary),
      update: (update: AnyUpdate) => {
        const next = this.seen && updated(this.seen, update);
        if (next && next !== this.seen) this.say(next);
      },
      failed: () => this.leave(sessionId),
    });
  }

  private say(summary: Summary | undefined): void {
    this.seen = summary;
    this.changedSummary.fire(summary);
  }
}

/** The folder of the active editor, or else the first one. */
export function activeFolder(): vscode.WorkspaceFolder | undefined {
  return folderOfEditor() ?? vscode.workspace.workspaceFolders?.[0];
}

function folderOfEditor(): vscode.WorkspaceFolder | undefined {
  const uri = vscode.window.activeTextEditor?.document.uri;
  return uri && vscode.workspace.getWorkspaceFolder(uri);
}

/** The folder for a new session: the person chooses, where no editor tells. Throws CancellationError. */
async function folderOfNew(): Promise<vscode.WorkspaceFolder | undefined> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  const told = folderOfEditor() ?? (folders.length < 2 ? folders[0] : undefined);
  if (told || !folders.length) return told;
  const chosen = await vscode.window.showWorkspaceFolderPick({ placeHolder: "The folder of the new session" });
  if (!chosen) throw new vscode.CancellationError();
  return chosen;
}

/** What the folder of a session is called; "" where all that is shown is of one folder. */
export function folderName(root: string): string {
  const around = vscode.workspace.getWorkspaceFolder(vscode.Uri.file(root));
  return around && vscode.workspace.workspaceFolders?.length === 1 ? "" : (around?.name ?? basename(root));
}
