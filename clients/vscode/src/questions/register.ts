import * as vscode from "vscode";
import { registerCommands } from "../commands";
import type { Magy, Questions } from "../magy";
import { configuration } from "../server/launcher";
import type { GrantInfo, Interaction } from "../wire/generated";
import { link, shortened, unlinked, whoAsks } from "./words";

/** Characters of a question in a notification. */
const TOAST = 160;

/** Tells of questions without taking the focus, and lets the person answer them from anywhere. */
export function registerQuestions(context: vscode.ExtensionContext, magy: Magy): void {
  const { questions } = magy;
  const item = vscode.window.createStatusBarItem("magy.questions", vscode.StatusBarAlignment.Right, 91);
  item.name = "Magy's questions";
  item.command = "magy.answerQuestion";
  item.backgroundColor = new vscode.ThemeColor("statusBarItem.warningBackground");
  let told = new Set<string>();
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
    told = new Set(open.map((one) => one.interactionId));
    const unseen = fresh.filter((one) => !magy.sessions.inSight(one.sessionId));
    if (unseen.length && configuration().get("notifyQuestions", true)) void notify(questions, unseen);
  };
  context.subscriptions.push(item, questions.onDidChange(changed));
  registerCommands(context, magy.log, {
    "magy.answerQuestion": (interactionId?: string) => answer(questions, interactionId),
    "magy.showPermissions": () => showPermissions(magy),
  });
}

/** Tells of questions, with what can be done about them, until none of them is open any more. Only
 * what shows progress can be taken away again. */
async function notify(questions: Questions, fresh: readonly Interaction[]): Promise<void> {
  const [first] = fresh;
  if (!first) return;
  const [said, reply] =
    fresh.length === 1
      ? [`${whoAsks(first)} asks: ${shortened(first.title, TOAST)}`, link("Answer…", "magy.answerQuestion", first.interactionId)]
      : [`${fresh.length} questions wait for an answer.`, link("Answer…", "magy.answerQuestion")];
  const show = link("Show Transcript", "magy.openSession", { sessionId: first.sessionId });
  const options = { location: vscode.ProgressLocation.Notification, title: unlinked(said), cancellable: true };
  await vscode.window.withProgress(options, (progress, token) => {
    progress.report({ message: `${reply} · ${show}` });
    return new Promise<void>((resolve) => {
      const listening = questions.onDidChange(() => {
        if (!fresh.some((one) => isOpen(questions, one.interactionId))) end();
      });
      const end = () => {
        listening.dispose();
        resolve();
      };
      token.onCancellationRequested(end);
    });
  });
}

function isOpen(questions: Questions, interactionId: string): boolean {
  return questions.open.some((one) => one.interactionId === interactionId);
}

async function answer(questions: Questions, interactionId: string | undefined): Promise<void> {
  const { open } = questions;
  const asked = open.find((one) => one.interactionId === interactionId);
  if (interactionId !== undefined && !asked) {
    void vscode.window.showInformationMessage("This question is not open any more.");
    return;
  }
  const chosen = asked ?? (open.length > 1 ? await which(open) : open[0]);
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
