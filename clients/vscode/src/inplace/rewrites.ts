import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import { tell } from "../commands";
import { wired } from "../knowledge/wired";
import type { Magy } from "../magy";
import type { RewriteDraft } from "../wire/generated";
import { headline } from "./draft";
import { Ghosts } from "./ghosts";

/** Milliseconds between two drawings: each has all of the draft. */
const PACE = 120;

interface Rewrite {
  uri: string;
  range: vscode.Range;
  instruction: string;
  text: string;
  sessionId: string | undefined;
  /** The person wants it to end. It may have no session yet. */
  stopped: boolean;
}

/** Text that is being rewritten in its place: dimmed, with the new text streaming in below it. */
export class Rewrites implements vscode.CodeLensProvider, vscode.Disposable {
  private readonly all = new Set<Rewrite>();
  private readonly ghosts = new Ghosts();
  private readonly lensesChanged = new vscode.EventEmitter<void>();
  private readonly disposables: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;
  private readonly due = new Set<string>();
  readonly onDidChangeCodeLenses = this.lensesChanged.event;

  constructor(private readonly magy: Magy) {
    const { connection } = magy;
    this.disposables = [
      this.ghosts,
      this.lensesChanged,
      connection.on("magy/rewrite/draft", (draft) => this.hear(draft)),
      connection.onDidChangeState((state) => {
        if (state !== "running" && state !== "silent") this.endAll();
      }),
      vscode.window.onDidChangeVisibleTextEditors(() => this.drawAll()),
      vscode.window.onDidChangeTextEditorSelection(() => this.tellPlace()),
      vscode.languages.registerCodeLensProvider({ scheme: "file" }, this),
    ];
  }

  dispose(): void {
    clearTimeout(this.timer);
    vscode.Disposable.from(...this.disposables).dispose();
  }

  /** Rewrites a range of a document as the instruction says. */
  async start(document: vscode.TextDocument, range: vscode.Range, instruction: string): Promise<void> {
    const uri = document.uri.toString();
    const rewrite: Rewrite = { uri, range, instruction, text: "", sessionId: undefined, stopped: false };
    this.all.add(rewrite);
    this.drawSoon(uri);
    this.tellPlace(); // the key that stops it is at hand at once
    try {
      const started = await this.magy.connection.request("magy/rewrite/start", {
        requestKey: randomUUID(),
        uri,
        range: wired(range),
        instruction,
      });
      rewrite.sessionId = started.sessionId;
      if (rewrite.stopped) await this.stop(started.sessionId);
    } catch (error) {
      this.end(rewrite);
      throw error;
    }
  }

  /** Stops the rewrite at the cursor, or the only one in the document. */
  async cancel(sessionId?: string): Promise<void> {
    const named = sessionId === undefined ? undefined : [...this.all].find((one) => one.sessionId === sessionId);
    const rewrite = named ?? this.here();
    if (!rewrite) throw new Error("No rewrite runs here that could be stopped.");
    rewrite.stopped = true;
    this.drawSoon(rewrite.uri);
    if (rewrite.sessionId) await this.stop(rewrite.sessionId);
  }

  private async stop(sessionId: string): Promise<void> {
    await this.magy.connection.request("magy/session/cancel", { sessionId });
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    return this.of(document.uri.toString()).flatMap(({ range, instruction, text, sessionId, stopped }) => {
      const at = new vscode.Range(range.start.line, 0, range.start.line, 0);
      if (stopped) return [new vscode.CodeLens(at, { title: "$(loading~spin) Stopping", command: "" })];
      const title = `$(loading~spin) ${headline(instruction, text)}`;
      const stop = { title: "$(stop-circle) Stop", command: "magy.rewrite.cancel", arguments: [sessionId] };
      return [new vscode.CodeLens(at, { title, command: "" }), new vscode.CodeLens(at, stop)];
    });
  }

  private hear(draft: RewriteDraft): void {
    const uri = vscode.Uri.parse(draft.uri).toString();
    const rewrite = this.find(draft, uri);
    if (draft.state !== "streaming") {
      if (rewrite) this.end(rewrite);
      this.say(draft);
    } else if (rewrite) {
      rewrite.range = rangeOf(draft);
      rewrite.text = draft.text;
      this.drawSoon(uri);
    }
  }

  /** The rewrite of a draft. One that was begun elsewhere, by a code action say, is shown from now
   * on. */
  private find(draft: RewriteDraft, uri: string): Rewrite | undefined {
    const own = this.of(uri);
    // The first draft may come before the answer that names the session.
    const found =
      own.find((one) => one.sessionId === draft.sessionId) ??
      own.find((one) => one.sessionId === undefined);
    if (found || draft.state !== "streaming") {
      if (found) found.sessionId = draft.sessionId;
      return found;
    }
    const range = rangeOf(draft);
    const rewrite = { uri, range, text: "", instruction: "Rewriting", sessionId: draft.sessionId, stopped: false };
    this.all.add(rewrite);
    return rewrite;
  }

  private say({ state, message, text }: RewriteDraft): void {
    if (state === "failed") {
      const why = message || "Nothing was rewritten.";
      const copy = { title: "Copy the New Text", command: "magy.rewrite.copy", arguments: [text] };
      void tell("warning", why, ...(text ? [copy] : []));
    } else if (message) void tell("info", message);
    else {
      const word = state === "applied" ? "$(check) Rewritten: accept or reject it" : "Rewrite stopped";
      vscode.window.setStatusBarMessage(word, 5_000);
    }
  }

  private of(uri: string): Rewrite[] {
    return [...this.all].filter((one) => one.uri === uri);
  }

  private here(): Rewrite | undefined {
    const editor = vscode.window.activeTextEditor;
    if (!editor) return undefined;
    const own = this.of(editor.document.uri.toString());
    const at = own.find(({ range }) => range.contains(editor.selection.active));
    return at ?? (own.length === 1 ? own[0] : undefined);
  }

  private endAll(): void {
    for (const rewrite of [...this.all]) this.end(rewrite);
  }

  private end(rewrite: Rewrite): void {
    this.all.delete(rewrite);
    this.drawSoon(rewrite.uri);
  }

  private drawAll(): void {
    for (const { uri } of this.all) this.drawSoon(uri);
  }

  private drawSoon(uri: string): void {
    this.due.add(uri);
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      for (const one of this.due) this.ghosts.draw(one, this.of(one));
      this.due.clear();
      this.lensesChanged.fire();
      this.tellPlace();
    }, PACE);
  }

  private tellPlace(): void {
    const here = this.here() !== undefined;
    void vscode.commands.executeCommand("setContext", "magy.rewriteHere", here);
  }
}

function rangeOf(draft: RewriteDraft): vscode.Range {
  const { start, end } = draft.range;
  return new vscode.Range(start.line, start.character, end.line, end.character);
}
