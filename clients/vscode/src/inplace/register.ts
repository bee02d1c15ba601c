import * as vscode from "vscode";
import { registerCommands } from "../commands";
import type { Magy } from "../magy";
import { aboutTerminal, act, fix } from "./asking";
import { writeCommitMessage } from "./commitMessage";
import { fileEditor, lineWords, meant } from "./places";
import { Rewrites } from "./rewrites";

/** What is asked of an agent right where the person works. */
export function registerInPlace(context: vscode.ExtensionContext, magy: Magy): void {
  const rewrites = new Rewrites(magy);
  context.subscriptions.push(
    rewrites,
    magy.connection.onDidRunCommand(({ command, result }) => showAnswer(magy, command, result)),
  );
  registerCommands(context, magy.log, {
    "magy.commitMessage": (control?: vscode.SourceControl) =>
      writeCommitMessage(magy, control?.rootUri),
    "magy.continueHere": () => act(magy, "continue"),
    "magy.document": () => act(magy, "document"),
    "magy.explain": () => act(magy, "explain"),
    "magy.fix": () => fix(magy),
    "magy.refactor": () => act(magy, "refactor"),
    "magy.rewrite.cancel": (sessionId?: string) => rewrites.cancel(sessionId),
    "magy.rewrite.copy": (text: string) => vscode.env.clipboard.writeText(text),
    "magy.rewriteSelection": () => rewrite(rewrites),
    "magy.terminal.explain": () =>
      aboutTerminal(magy, "Explain what the terminal shows here. Change nothing."),
    "magy.terminal.fix": () =>
      aboutTerminal(magy, "Fix what is wrong here. The terminal shows it:"),
    "magy.writeTests": () => act(magy, "tests"),
  });
}

/** Shows the session of what a code action or a command has asked; the focus stays. */
function showAnswer(magy: Magy, command: string, result: unknown): void {
  const sessionId = (result as { sessionId?: unknown } | null)?.sessionId;
  const asks = command === "magy.action.run" || command === "magy.prompt";
  // What rewrites is shown in the text, and has a session of its own.
  if (!asks || typeof sessionId !== "string" || sessionId.startsWith("rewrite-")) return;
  magy.sessions.show(sessionId);
  void vscode.commands.executeCommand("magy.transcript.focus", { preserveFocus: true });
}

async function rewrite(rewrites: Rewrites): Promise<void> {
  const editor = fileEditor("rewrite");
  const range = await meant(editor);
  editor.selection = new vscode.Selection(range.start, range.end);
  const instruction = await vscode.window.showInputBox({
    title: lineWords(range),
    placeHolder: range.isEmpty ? "What to write here" : "How to change this",
  });
  if (!instruction?.trim()) return;
  await rewrites.start(editor.document, editor.selection, instruction);
}
