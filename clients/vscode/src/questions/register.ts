import * as vscode from "vscode";
import { registerCommands } from "../commands";
import type { Magy } from "../magy";
import { configuration } from "../server/launcher";
import type { GrantInfo, Interaction } from "../wire/generated";
import { shortened, whoAsks } from "./words";

/** Characters of a question in a notification. */
const TOAST = 160;

/** Tells of questions without taking the focus, and lets the person answer them from anywhere. */
export function registerQuestions(context: vscode.ExtensionContext, magy: Magy): void {
  const { questions } = magy;
  const item = vscode.window.createStatusBarItem("magy.questions", vscode.StatusBarAlignment.Right, 91);
  item.name = "Magy's questions";
  item.command = "magy.answerQuestion";
  item.backgroundColor = new vscode.ThemeColor("statusBarItem.warningBackground");
  const told = new Set<string>();
  const changed = () => {
    const { open } = questions;
    const count = open.length;
    item.text = `$(question) ${count}`;
    item.tooltip = `Magy asks: ${open.map((one) => shortened(one.title, TOAST)).join("\n")}`;
    item.accessibilityInformation = { label: `Magy asks ${count === 1 ? "a question" : `${count} questions`}` };
    if (count) item.show();
    else item.hide();
    void vscode.commands.executeCommand("setContext", "magy.questions", count);
    const fresh = open.filter((one) => !told.has(one.interactionId));
    fresh.forEach((one) => told.add(one.interactionId));
    if (fresh.length && configuration().get("notifyQuestions", true)) void notify(magy, fresh);
  };
  context.subscriptions.push(item, questions.onDidChange(changed));
  registerCommands(context, magy.log, {
    "magy.answerQuestion": (question?: Interaction) => answer(magy, question),
    "magy.showPermissions": () => showPermissions(magy),
  });
}

async function notify(magy: Magy, fresh: readonly Interaction[]): Promise<void> {
  const [first] = fresh;
  if (!first) return;
  const said =
    fresh.length === 1
      ? `${whoAsks(first)} asks: ${shortened(first.title, TOAST)}`
      : `${fresh.length} questions wait for an answer.`;
  const [reply, show] = ["Answer…", "Show Transcript"];
  const chosen = await vscode.window.showInformationMessage(said, reply, show);
  if (chosen === reply) await answer(magy, fresh.length === 1 ? first : undefined);
  if (chosen === show) {
    magy.sessions.show(first.sessionId);
    await vscode.commands.executeCommand("magy.focusTranscript");
  }
}

async function answer(magy: Magy, question: Interaction | undefined): Promise<void> {
  const { questions } = magy;
  const open = questions.open;
  if (question && !open.some((one) => one.interactionId === question.interactionId)) {
    void vscode.window.showInformationMessage("This question is not open any more.");
    return;
  }
  const chosen = question ?? (open.length > 1 ? await which(open) : open[0]);
  if (chosen || !open.length) await questions.ask(chosen);
}

async function which(open: readonly Interaction[]): Promise<Interaction | undefined> {
  const items = open.map((question) => ({
    label: shortened(question.title, TOAST),
    description: whoAsks(question),
    question,
  }));
  return (await vscode.window.showQuickPick(items, { title: "Which question?" }))?.question;
}

const SCOPES: Record<string, string> = {
  project: "in this project",
  session: "in this session",
  run: "until your next prompt",
};

/** Lists what was allowed for longer than once; what is chosen is withdrawn. */
async function showPermissions(magy: Magy): Promise<void> {
  const sessionId = magy.sessions.current;
  const root = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  if (!sessionId && !root) throw new Error("Open a folder: permissions belong to a session or a project.");
  const of = sessionId ? { sessionId } : { root };
  const { grants } = await magy.connection.request("magy/permission/list", of);
  const items = grants.map((grant: GrantInfo) => ({
    label: `${grant.key} \`${grant.pattern}\``,
    description: SCOPES[grant.scope] ?? grant.scope,
    grant,
  }));
  const chosen = await vscode.window.showQuickPick(items, {
    title: "What You Allowed",
    placeHolder: items.length ? "Choose what Magy is to ask about again" : "Nothing is remembered",
    canPickMany: true,
  });
  for (const { grant } of chosen ?? []) {
    await magy.connection.request("magy/permission/withdraw", { ...of, grantId: grant.grantId });
  }
  if (chosen?.length) void vscode.window.showInformationMessage("Magy asks about these again.");
}
