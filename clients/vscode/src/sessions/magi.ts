import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import type { Magy } from "../magy";
import type { MagiRuling } from "../wire/generated";

/** Has three agents judge a question; the agent of the session that is shown puts it to them. */
export async function deliberate(magy: Magy): Promise<void> {
  const title = "Deliberate: What Is to Be Decided?";
  const question = await vscode.window.showInputBox({ title, ignoreFocusOut: true });
  if (!question?.trim()) return;
  const sessionId = await magy.sessions.ensure();
  const prompt = [{ type: "text" as const, text: `@magi ${question}` }];
  await magy.connection.request("magy/session/prompt", { sessionId, messageId: `v-${randomUUID()}`, prompt });
  await vscode.commands.executeCommand("magy.focusTranscript");
}

/** Chooses a ruling of the session that is shown, unless there is only one, and shows its report. */
export async function showRuling(magy: Magy): Promise<void> {
  const sessionId = magy.sessions.current;
  if (!sessionId) throw new Error("No session is shown.");
  const { rulings } = await magy.connection.request("magy/magi/list", { sessionId });
  if (!rulings.length) throw new Error("Nothing was deliberated in this session; Magy: Deliberate… does it.");
  const chosen = rulings.length === 1 ? rulings[0] : await choose(rulings);
  if (!chosen) return;
  const same = chosen.same
    ? "Worked out again from the votes: the same as in the log, byte for byte."
    : "The log has ANOTHER ruling than these votes come to.";
  const content = [same, "", "```text", ...chosen.shown.box, "```", "", chosen.report].join("\n");
  const document = await vscode.workspace.openTextDocument({ language: "markdown", content });
  await vscode.window.showTextDocument(document);
}

async function choose(rulings: readonly MagiRuling[]): Promise<MagiRuling | undefined> {
  const items = rulings.map((ruling) => ({
    label: `${ruling.final} ${ruling.confidence} %`,
    description: ruling.at.slice(0, 16),
    detail: ruling.shown.question,
    ruling,
  }));
  return (await vscode.window.showQuickPick(items, { title: "Ruling" }))?.ruling;
}
