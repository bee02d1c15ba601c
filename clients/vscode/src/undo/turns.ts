// What going back would do, as a text to read before it is done. Pure.
import type { CheckpointInfo, CheckpointParams, CheckpointPreview, RestoredFile } from "../wire/generated";

/** What is to be undone or redone, and how much of it. */
export interface Wanted {
  sessionId: string;
  /** The turn to go back to before, or... */
  turnId?: string;
  /** ...the restore to take back. */
  undoes?: string;
  prompt: string;
  files: boolean;
  conversation: boolean;
}

export function paramsOf(wanted: Wanted): CheckpointParams {
  const { sessionId, turnId, undoes, files, conversation } = wanted;
  return { sessionId, files, conversation, ...(undoes ? { undoes } : { turnId: turnId ?? null }) };
}

export function undoOf(sessionId: string, turn: CheckpointInfo): Wanted {
  const { turnId, prompt, conversation } = turn;
  return { sessionId, turnId, prompt, files: true, conversation };
}

export function redoOf(sessionId: string, turn: CheckpointInfo): Wanted {
  return {
    sessionId,
    undoes: turn.restoreId,
    prompt: turn.prompt,
    files: true,
    conversation: true,
  };
}

/** "Undo 2 turns: make it polite". */
export function titleOf(wanted: Wanted, turns: number): string {
  const count = turns === 1 ? "1 Turn" : `${turns} Turns`;
  return `${wanted.undoes ? "Redo" : "Undo"} ${count}: ${oneLine(wanted.prompt)}`;
}

export function oneLine(text: string, most = 60): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`;
}

export function changes(file: RestoredFile): boolean {
  return file.conflict === "" && file.action !== "nothing";
}

const HOW = "Nothing of this has happened yet: Apply Preview (✓ above) does it.";

/** The preview as a diff with its summary above. Each line of the summary begins with `# `. */
export function previewText(wanted: Wanted, preview: CheckpointPreview, nameOf: (path: string) => string): string {
  const changed = preview.files.filter(changes);
  const lines = ["", ...filesOf(wanted, preview, changed, nameOf), conversationOf(wanted, preview), HOW, ""];
  const diffs = changed.map((file) => file.diff).filter((diff) => diff !== "");
  return [...lines.map((line) => `# ${line}`.trimEnd()), ...diffs].join("\n");
}

function filesOf(
  wanted: Wanted,
  preview: CheckpointPreview,
  changed: readonly RestoredFile[],
  nameOf: (path: string) => string,
): string[] {
  if (!wanted.files) return ["Files stay as they are."];
  const left = preview.files.filter((file) => file.conflict !== "");
  const lines = changed.map((file) => {
    const lines = `(+${file.added} −${file.removed})`;
    if (file.action === "rename") return `${nameOf(file.movedFrom)} is renamed to ${nameOf(file.path)} ${lines}.`;
    const what = { create: "comes back", remove: "is removed" }[file.action] ?? "changes";
    return `${nameOf(file.path)} ${what} ${lines}.`;
  });
  if (lines.length === 0) lines.push("No file would change.");
  return [...lines, ...left.map((file) => `${nameOf(file.path)} is left alone: ${file.conflict}`)];
}

function conversationOf(wanted: Wanted, preview: CheckpointPreview): string {
  if (preview.conversation) {
    return wanted.undoes ? "The conversation comes back." : "The conversation goes back to before this prompt.";
  }
  return preview.why || "The conversation stays as it is.";
}
