import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import { wired, wiredDiagnostic } from "../knowledge/wired";
import type { Magy } from "../magy";
import { fenced, shortened } from "../review/hunks";
import type { ActionRun } from "../wire/generated";
import { fileEditor } from "./places";
import { terminalSelection } from "./terminal";

/** Has an action of the server done at the cursor or with the selection: see docs/howto/actions. */
export async function act(magy: Magy, action: string, text = ""): Promise<void> {
  const { document, selection } = fileEditor("ask about");
  await run(magy, { action, uri: document.uri.toString(), range: wired(selection), text });
}

/** Has the problems at the cursor fixed, or those that the person chooses of all. */
export async function fix(magy: Magy): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const here = editor ? at(editor.document.uri, editor.selection) : [];
  if (editor && here.length) return fixThese(magy, editor.document.uri, here);
  const chosen = await chooseProblem();
  if (chosen) await fixThese(magy, chosen.uri, [chosen.problem]);
}

/** Asks about what is selected in the terminal. */
export async function aboutTerminal(magy: Magy, request: string): Promise<void> {
  const selected = await terminalSelection();
  const text = `${request}\n\n${fenced(selected.replace(/\s+$/, ""), "console")}`;
  const sessionId = await magy.sessions.ensure();
  await magy.connection.request("magy/session/prompt", {
    sessionId,
    messageId: randomUUID(),
    prompt: [{ type: "text", text }],
  });
  magy.sessions.show(sessionId);
}

async function fixThese(
  magy: Magy,
  uri: vscode.Uri,
  problems: readonly vscode.Diagnostic[],
): Promise<void> {
  const range = problems.map((one) => one.range).reduce((all, one) => all.union(one));
  const diagnostics = problems.map(wiredDiagnostic);
  await run(magy, { action: "fix", uri: uri.toString(), range: wired(range), diagnostics });
}

async function run(magy: Magy, asked: Omit<ActionRun, "sessionId" | "messageId">): Promise<void> {
  await magy.connection.start();
  const sessionId = sessionInUse(magy);
  // The language client registers the server's commands, and tells what came of them.
  await vscode.commands.executeCommand("magy.action.run", {
    ...asked,
    ...(sessionId ? { sessionId } : {}),
    messageId: randomUUID(),
  });
}

/** The session that is shown. Among several projects the server knows which one was used last for
 * that of the file. */
function sessionInUse(magy: Magy): string | undefined {
  return vscode.workspace.workspaceFolders?.length === 1 ? magy.sessions.current : undefined;
}

function at(uri: vscode.Uri, range: vscode.Range): vscode.Diagnostic[] {
  return vscode.languages
    .getDiagnostics(uri)
    .filter((one) => one.range.intersection(range) !== undefined);
}

interface Choice extends vscode.QuickPickItem {
  uri: vscode.Uri;
  problem: vscode.Diagnostic;
}

async function chooseProblem(): Promise<Choice | undefined> {
  const active = vscode.window.activeTextEditor?.document.uri.toString();
  const all = vscode.languages.getDiagnostics().filter(([uri]) => uri.scheme === "file");
  const items = all
    .sort(([one], [other]) => Number(other.toString() === active) - Number(one.toString() === active))
    .flatMap(([uri, problems]) => problems.map((problem) => choice(uri, problem)));
  if (items.length === 0) throw new Error("The editor reports no problem.");
  return vscode.window.showQuickPick(items, {
    title: "Magy: Fix a Problem",
    placeHolder: "Choose a problem that the editor reports",
    matchOnDescription: true,
  });
}

function choice(uri: vscode.Uri, problem: vscode.Diagnostic): Choice {
  const icon = ["$(error)", "$(warning)", "$(info)", "$(lightbulb)"][problem.severity] ?? "";
  return {
    label: `${icon} ${shortened(problem.message.replace(/\s+/g, " "), 120)}`,
    description: `${vscode.workspace.asRelativePath(uri)}:${problem.range.start.line + 1}`,
    uri,
    problem,
  };
}
