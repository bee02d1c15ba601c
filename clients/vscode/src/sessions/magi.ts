import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import { tell } from "../commands";
import type { Magy } from "../magy";
import type { FeelingShown, MagiLogParams, MagiRuling } from "../wire/generated";
import { folderOfCurrent } from "./choose";

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
  const chosen = rulings.length === 1 ? rulings[0] : await choose(rulings, "Ruling");
  if (!chosen) return;
  const same = chosen.same
    ? "Worked out again from the votes: the same as in the log, byte for byte."
    : "The log has ANOTHER ruling than these votes come to.";
  const holds = chosen.overturns ? ["", holding(chosen)] : [];
  const content = [same, ...holds, "", "```text", ...chosen.shown.box, "```", "", chosen.report].join("\n");
  const document = await vscode.workspace.openTextDocument({ language: "markdown", content });
  await vscode.window.showTextDocument(document);
}

/** Chooses, of all sessions of the project, a ruling that waits to come in the place of an earlier one, and has it do
 * so once the person has read what that means. */
export async function acceptRuling(magy: Magy): Promise<void> {
  const waiting: MagiRuling[] = [];
  for (let cursor: number | null = 0; cursor !== null; ) {
    const page: { rulings: MagiRuling[]; nextCursor: number | null } = await magy.connection.request(
      "magy/magi/list",
      { cwd: folderOfCurrent(magy), cursor },
    );
    waiting.push(...page.rulings.filter((ruling) => ruling.overturns && !ruling.accepted));
    cursor = page.nextCursor;
  }
  if (!waiting.length) throw new Error("No ruling of this project waits to be accepted.");
  const chosen = await choose(waiting, "Accept a Ruling That Overturns an Earlier One");
  if (!chosen) return;
  const accept = "Accept";
  const detail = `${holding(chosen)}\n\n${chosen.shown.question}`;
  const asked = `Have the ruling ${chosen.final} hold?`;
  if ((await vscode.window.showWarningMessage(asked, { modal: true, detail }, accept)) !== accept) return;
  const sessionId = chosen.id.slice(0, chosen.id.lastIndexOf("/"));
  await magy.connection.request("magy/magi/accept", { sessionId, rulingId: chosen.id });
  void vscode.window.showInformationMessage(`Accepted: ${chosen.final} holds in the place of ${chosen.overturns}.`);
}

function holding(ruling: MagiRuling): string {
  return ruling.accepted
    ? `It holds in the place of ${ruling.overturns}: a person accepted it.`
    : `It would overturn ${ruling.overturns}, which holds until you accept this one (Magy: Accept Ruling…).`;
}

async function choose(rulings: readonly MagiRuling[], title: string): Promise<MagiRuling | undefined> {
  const items = rulings.map((ruling) => ({
    label: `${ruling.final} ${ruling.confidence} %`,
    description: ruling.at.slice(0, 16),
    detail: ruling.shown.question,
    ruling,
  }));
  return (await vscode.window.showQuickPick(items, { title }))?.ruling;
}

const READ = "I have read all of it";

/** Lists what CASPER remembers in the project, the newest first. What is chosen is taken out, once that was confirmed;
 * the first line says that a person has read all. */
export async function showEmotionalLog(magy: Magy): Promise<void> {
  let change: Omit<MagiLogParams, "cwd"> = {};
  for (;;) {
    const log = await magy.connection.request("magy/magi/log", { cwd: folderOfCurrent(magy), ...change });
    if (!log.entries.length) return tell("info", "CASPER remembers nothing here.");
    const detail = log.reviewDue ? "Many strong feelings within a week: none is used until then." : "";
    const items = [{ label: `$(check) ${READ}`, detail, entry: undefined }, ...log.entries.map(felt)];
    const placeHolder = "Choose an entry to take it out";
    const chosen = await vscode.window.showQuickPick(items, { title: "CASPER's Emotional Log", placeHolder });
    if (!chosen) return;
    if (chosen.entry === undefined) change = { reviewed: true };
    else change = (await agreed(chosen.entry)) ? { delete: [chosen.entry.id] } : {};
  }
}

function felt(entry: FeelingShown) {
  const valence = `${entry.valence < 0 ? "" : "+"}${entry.valence.toFixed(1)}`;
  const counts = `counts ${Math.round(100 * entry.strength)} %`;
  const description = `${entry.date.slice(0, 10)}  ${valence}  ${counts}`;
  return { label: entry.emotion, description, detail: entry.lesson, entry };
}

async function agreed(entry: FeelingShown): Promise<boolean> {
  const yes = "Take Out";
  const detail = `${entry.emotion}: ${entry.lesson}`;
  return (await vscode.window.showWarningMessage("Take this entry out for good?", { modal: true, detail }, yes)) === yes;
}
