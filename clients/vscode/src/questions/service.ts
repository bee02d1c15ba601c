import * as vscode from "vscode";
import type { Connection } from "../connection";
import type { Answer, Questions } from "../magy";
import type { Interaction, InteractionChanged, RespondResult } from "../wire/generated";
import { fillIn } from "./form";
import { apply, merged } from "./merging";

/** The open questions of this window's folders, the one that has waited longest first. */
export class OpenQuestions implements Questions, vscode.Disposable {
  private questions = new Map<string, Interaction>();
  /** Which list was asked for last; and what changed since, until it is there. */
  private loads = 0;
  private since: InteractionChanged[] | undefined;
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  private readonly folders: vscode.Disposable;

  constructor(
    private readonly connection: Connection,
    private readonly asks: (question: Interaction, all: Questions) => Promise<void>,
  ) {
    connection.on("magy/interaction/changed", (change) => this.apply(change));
    connection.onDidChangeState((state) => {
      if (state === "running") void this.load();
      else if (!connection.alive) this.forget();
    });
    this.folders = vscode.workspace.onDidChangeWorkspaceFolders(() => {
      if (connection.alive) void this.load();
    });
  }

  get open(): readonly Interaction[] {
    return [...this.questions.values()];
  }

  async respond(question: Pick<Interaction, "interactionId" | "sessionId">, answer: Answer): Promise<RespondResult | undefined> {
    const { interactionId, sessionId } = question;
    const form = answer.outcome === "allow" ? this.questions.get(interactionId)?.form : undefined;
    const content = form ? await fillIn(form) : undefined;
    if (form && !content) return undefined;
    const filled = content && Object.keys(content).length ? { content } : {};
    return this.connection.request("magy/interaction/respond", { interactionId, sessionId, ...answer, ...filled });
  }

  async ask(question: Interaction | undefined = this.open[0]): Promise<void> {
    if (question) await this.asks(question, this);
    else void vscode.window.showInformationMessage("No question is open.");
  }

  dispose(): void {
    this.folders.dispose();
    this.changed.dispose();
  }

  private apply(change: InteractionChanged): void {
    this.since?.push(change);
    apply(this.questions, change);
    this.changed.fire();
  }

  /** The server has gone, and its questions with it: the next one asks them again. */
  private forget(): void {
    this.loads += 1; // what is asked for has been asked of it
    if (!this.questions.size) return;
    this.questions.clear();
    this.changed.fire();
  }

  private async load(): Promise<void> {
    const mine = ++this.loads;
    const since: InteractionChanged[] = [];
    this.since = since;
    const folders = vscode.workspace.workspaceFolders?.filter(({ uri }) => uri.scheme === "file") ?? [];
    const asked = folders.length ? folders.map(({ uri }) => ({ root: uri.fsPath })) : [{}];
    const answers = await Promise.allSettled(asked.map((about) => this.connection.request("magy/interaction/list", about)));
    const told = answers.filter((answer) => answer.status === "fulfilled"); // a folder may be missing on the disk
    if (mine !== this.loads) return;
    this.since = undefined;
    if (!told.length) return; // the connection tells
    this.questions = merged(told.flatMap(({ value }) => value.interactions), since);
    this.changed.fire();
  }
}
