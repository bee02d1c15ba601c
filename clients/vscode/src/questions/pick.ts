import * as vscode from "vscode";
import type { Answer, Questions } from "../magy";
import type { Interaction } from "../wire/generated";

interface Choice extends vscode.QuickPickItem {
  answer: Answer | undefined;
}

/** Asks the person about one question. The first choice never allows. */
export async function pickAnswer(question: Interaction, questions: Questions): Promise<void> {
  const choice = await vscode.window.showQuickPick(choices(question), {
    title: question.title,
    placeHolder: question.rule,
    ignoreFocusOut: true,
  });
  if (!choice?.answer) return;
  await questions.respond(question, choice.answer);
}

function choices(question: Interaction): Choice[] {
  const covers = question.covers.join(", ");
  const all: Choice[] = [
    { label: "Leave it open", answer: undefined },
    { label: "Refuse", answer: { outcome: "refuse" } },
    { label: "Allow once", answer: { outcome: "allow", scope: "once" } },
  ];
  if (!covers) return all;
  return [
    ...all,
    { label: "Allow for this session", detail: covers, answer: { outcome: "allow", scope: "session" } },
    { label: "Allow for this project", detail: covers, answer: { outcome: "allow", scope: "project" } },
  ];
}
