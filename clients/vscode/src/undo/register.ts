import * as vscode from "vscode";
import { registerCommands } from "../commands";
import type { Magy } from "../magy";
import type { CheckpointInfo } from "../wire/generated";
import { Previews } from "./preview";
import { oneLine, redoOf, undoOf } from "./turns";

/** Turns that are listed at once; "Older" shows more. */
const LISTED = 100;

/** Undo and redo of turns, each shown before it is done. */
export function registerUndo(context: vscode.ExtensionContext, magy: Magy): void {
  const previews = new Previews(magy);
  context.subscriptions.push(previews);
  registerCommands(context, magy.log, {
    "magy.undo.checkpoints": () => checkpoints(magy, previews),
    "magy.undo.close": (uri?: vscode.Uri) => previews.close(uri),
    "magy.undo.confirm": (uri?: vscode.Uri) => previews.confirm(uri),
    "magy.undo.redoTurn": async () => {
      const sessionId = session(magy);
      // Turns are undone from the last on, so the first of them was the newest undo.
      const turn = (await turnsOf(magy, sessionId)).find((one) => one.restoreId !== "");
      if (!turn) throw new Error("No turn of this session was undone.");
      await previews.show(redoOf(sessionId, turn));
    },
    "magy.undo.toggleConversation": (uri?: vscode.Uri) => previews.toggle("conversation", uri),
    "magy.undo.toggleFiles": (uri?: vscode.Uri) => previews.toggle("files", uri),
    "magy.undo.undoTurn": async () => {
      const sessionId = session(magy);
      const turn = (await turnsOf(magy, sessionId)).findLast((one) => one.state !== "undone");
      if (!turn) throw new Error("There is nothing to undo in this session.");
      await previews.show(undoOf(sessionId, turn));
    },
  });
}

function session(magy: Magy): string {
  const current = magy.sessions.current;
  if (!current) throw new Error("No session is shown. Open one, or ask something first.");
  return current;
}

/** The oldest first. */
async function turnsOf(magy: Magy, sessionId: string, before?: string): Promise<CheckpointInfo[]> {
  const params = { sessionId, limit: LISTED, before: before ?? null };
  return (await magy.connection.request("magy/checkpoint/list", params)).checkpoints;
}

interface Item extends vscode.QuickPickItem {
  turn?: CheckpointInfo;
}

async function checkpoints(magy: Magy, previews: Previews): Promise<void> {
  const sessionId = session(magy);
  let turns = await turnsOf(magy, sessionId);
  if (turns.length === 0) throw new Error("This session has no turn to go back to yet.");
  for (let more = turns.length === LISTED; ; ) {
    const items: Item[] = turns.toReversed().map(itemOf);
    if (more) items.push({ label: "$(history) Older…" });
    const chosen = await vscode.window.showQuickPick(items, {
      title: "Magy: Restore Checkpoint",
      placeHolder: "Choose a turn to see what going back to before its prompt would change",
      matchOnDescription: true,
      matchOnDetail: true,
    });
    if (!chosen) return;
    if (chosen.turn) {
      const { turn } = chosen;
      const wanted = turn.restoreId ? redoOf(sessionId, turn) : undoOf(sessionId, turn);
      return previews.show(wanted);
    }
    const older = await turnsOf(magy, sessionId, turns[0]?.turnId);
    more = older.length === LISTED;
    turns = [...older, ...turns];
  }
}

function itemOf(turn: CheckpointInfo): Item {
  const files = turn.files.map((file) => {
    const state = file.state === "applied" ? "" : ` ${file.state}`;
    return `${vscode.workspace.asRelativePath(file.path)} +${file.added} −${file.removed}${state}`;
  });
  const undone = turn.restoreId ? "undone: choose it to redo it" : "";
  const at = new Date(turn.at).toLocaleString([], { dateStyle: "short", timeStyle: "short" });
  return {
    label: `${turn.restoreId ? "$(redo)" : "$(discard)"} ${oneLine(turn.prompt, 80)}`,
    description: [at, undone].filter(Boolean).join(", "),
    detail: files.join(", ") || "No files",
    turn,
  };
}
