import * as vscode from "vscode";
import type { Connection } from "../connection";
import type { Answer, Questions } from "../magy";
import type { Interaction, InteractionChanged, RespondResult } from "../wire/generated";
import { fillIn } from "./form";

/** The open questions of this window's folders, the one that has waited longest first. */
export class OpenQuestions implements Questions, vscode.Disposable {
  private readonly questions = new Map<string, Interaction>();
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  private readonly folders: vscode.Disposable;

  constructor(
    private readonly connection: Connection,
    private readonly asks: (question: Interaction, all: Questions) => Promise<void>,
  ) {
    connection.on("magy/interaction/changed", (change) => this.apply(change));
    connection.onDidChangeState((state) => {
      if (state === "running") this.load().catch(() => undefined); // the connection tells
      else if (!connection.alive) this.forget();
    });
    this.folders = vscode.workspace.onDidChangeWorkspaceFolders(() => {
      if (connection.alive) this.load().catch(() => undefined);
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

  private apply({ opened, resolved }: InteractionChanged): void {
    for (const one of opened) this.questions.set(one.interactionId, one);
    for (const id of resolved) this.questions.delete(id);
    this.changed.fire();
  }

  /** The server has gone, and its questions with it: the next one asks them again. */
  private forget(): void {
    if (!this.questions.size) return;
    this.questions.clear();
    this.changed.fire();
  }

  private async load(): Promise<void> {
    const folders = vscode.workspace.workspaceFolders?.filter(({ uri }) => uri.scheme === "file") ?? [];
    const asked = folders.length ? folders.map(({ uri }) => ({ root: uri.fsPath })) : [{}];
    const answers = await Promise.all(asked.map((about) => this.connection.request("magy/interaction/list", about)));
    const found = answers.flatMap(({ interactions }) => interactions);
    this.questions.clear();
    for (const one of found.sort((a, b) => a.createdAt.localeCompare(b.createdAt))) this.questions.set(one.interactionId, one);
    this.changed.fire();
  }
}
