import * as vscode from "vscode";
import type { Answer, Questions } from "../magy";
import type { Interaction } from "../wire/generated";
import { choices, type Choice, shortened, wholeOf, why } from "./words";

type Item = Choice & vscode.QuickPickItem;

/** Characters of a question in the title of a quick pick. */
const TITLE = 240;

/** Asks the person about one question. Escape leaves it open. */
export async function pickAnswer(question: Interaction, questions: Questions): Promise<void> {
  const choice = await offer(question, questions);
  if (!choice) return;
  switch (choice.does) {
    case "leave":
      return;
    case "look":
      return look(question);
    case "answer":
      return send(question, questions, choice.answer);
    case "reason": {
      const reason = await vscode.window.showInputBox({
        title: "Why not? The agent is told.",
        ignoreFocusOut: true,
      });
      if (reason !== undefined) await send(question, questions, { outcome: "refuse", reason });
      return;
    }
    case "confirm":
      if (await confirmed(question)) await send(question, questions, choice.answer);
  }
}

/** Ends by itself when the question was answered elsewhere. */
async function offer(question: Interaction, questions: Questions): Promise<Choice | undefined> {
  const pick = vscode.window.createQuickPick<Item>();
  pick.title = shortened(question.title, TITLE);
  pick.placeholder = why(question);
  pick.items = choices(question);
  pick.ignoreFocusOut = true;
  const withdrawn = questions.onDidChange(() => {
    if (questions.open.some((one) => one.interactionId === question.interactionId)) return;
    pick.hide();
    void vscode.window.showInformationMessage("The question was answered elsewhere, or withdrawn.");
  });
  try {
    return await new Promise((resolve) => {
      pick.onDidAccept(() => resolve(pick.selectedItems[0]));
      pick.onDidHide(() => resolve(undefined));
      pick.show();
    });
  } finally {
    withdrawn.dispose();
    pick.dispose();
  }
}

/** What an answer for longer would allow, rule by rule. The first choice allows nothing. */
async function confirmed(question: Interaction): Promise<boolean> {
  const allow = "$(check-all) Allow all of these";
  const rules = question.covers.map((label) => ({ label, description: "would be allowed" }));
  const none = { label: "$(x) Allow none of them, and go back" };
  const chosen = await vscode.window.showQuickPick([none, ...rules, { label: allow }], {
    title: "What this answer would allow",
    ignoreFocusOut: true,
  });
  return chosen?.label === allow;
}

async function send(question: Interaction, questions: Questions, answer: Answer | undefined): Promise<void> {
  if (!answer) return;
  const result = await questions.respond(question, answer);
  if (result && !result.accepted) {
    void vscode.window.showInformationMessage(`The question was resolved before: ${result.winner ?? "closed"}.`);
  }
}

async function look(question: Interaction): Promise<void> {
  const document = await vscode.workspace.openTextDocument({
    language: "markdown",
    content: wholeOf(question),
  });
  await vscode.window.showTextDocument(document, { preview: true });
}
