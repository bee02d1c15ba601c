// What the editor shows of hunks: titles, sentences, the lines that they touch. Pure: it works
// on what the server says, and knows no diff.
import type { Range, ReviewFile, ReviewHunk } from "../wire/generated";

/** Characters of an old line that a code lens shows. */
const SHOWN = 80;
/** Lines of a text that a hover shows. */
export const HOVERED = 30;

export interface Target {
  file: ReviewFile;
  hunk: ReviewHunk;
}

/** Whether the hunk is of lines, and not of a file as a whole. */
export function isOfLines(hunk: ReviewHunk): boolean {
  return ["add", "change", "delete"].includes(hunk.kind);
}

export function isProposed(about: { mode: string }): boolean {
  return about.mode === "proposed";
}

/** The first line of a range of whole lines, and the line behind it. They are equal where lines
 * were deleted. */
export function lineSpan(range: Range): { start: number; end: number } {
  // Only where a file has no line end at its end does a range end behind a character.
  return { start: range.start.line, end: range.end.line + (range.end.character > 0 ? 1 : 0) };
}

/** The lines of a text, without their ends. */
export function linesOf(text: string): string[] {
  if (text === "") return [];
  return text.replace(/\r?\n$/, "").split(/\r?\n/);
}

/** The hunks that have a line between two, both included, or show a deletion there. */
export function touching(files: readonly ReviewFile[], first: number, last: number): Target[] {
  return files.flatMap((file) =>
    file.hunks.filter((hunk) => touches(hunk, first, last)).map((hunk) => ({ file, hunk })),
  );
}

function touches(hunk: ReviewHunk, first: number, last: number): boolean {
  const { start, end } = lineSpan(hunk.range);
  if (start === end) {
    return [start, hunk.anchor].some((line) => first <= line && line <= last);
  }
  return first < end && start <= last;
}

/** The line that a hunk's buttons stand above. `count`: lines of the document. */
export function buttonLine(hunk: ReviewHunk, count: number): number {
  return Math.max(0, Math.min(hunk.range.start.line, count - 1));
}

/** What a hunk of a file as a whole has done, as a sentence. */
export function sentence(hunk: ReviewHunk): string {
  const { kind, oldText, newText } = hunk;
  switch (kind) {
    case "create":
      return `The file is new: ${newText}.`;
    case "remove":
      return `The file is removed; it was ${oldText}.`;
    case "rename":
      return `The file was ${oldText} before.`;
    case "binary":
      return `The file is ${newText}; it was ${oldText}.`;
    default:
      return `It is ${newText}; it was ${oldText}.`;
  }
}

/** What the text around a hunk does not show: the lines that it removed, or proposes. Empty if
 * there are none. */
export function unseen({ file, hunk }: Target): string {
  if (!isOfLines(hunk)) return sentence(hunk);
  const proposed = isProposed(file);
  const lines = linesOf(proposed ? hunk.newText : hunk.oldText);
  if (lines.length === 0) {
    const gone = linesOf(hunk.oldText).length;
    if (!proposed || gone === 0) return "";
    return gone === 1 ? "− this line" : `− these ${gone} lines`;
  }
  const first = shortened((lines.find((line) => line.trim() !== "") ?? "").trim());
  const more = lines.length - 1;
  const rest = more > 0 ? ` … ${counted(more, "more line")}` : "";
  return `${proposed ? "+" : "−"} ${first || counted(lines.length, "empty line")}${first ? rest : ""}`;
}

/** Who made a change, and what became of it since. */
export function about({ file, hunk }: Target): string {
  const origin = hunk.origins.at(-1);
  const who = origin?.agent || "An agent";
  const did = isProposed(file) ? "proposes" : "changed";
  const parts = [origin?.command ? `Changed while \`${origin.command}\` ran` : `${who} ${did} this`];
  if (hunk.amended) parts.push("you have changed it since");
  if (hunk.state === "conflict") parts.push("it was proposed for other lines: yours have changed");
  return parts.join("; ");
}

/** The lines that are not in the text, as a Markdown block. */
export function unseenBlock(target: Target): string {
  const { file, hunk } = target;
  if (!isOfLines(hunk)) return "";
  const [text, sign] = isProposed(file) ? [hunk.newText, "+"] : [hunk.oldText, "-"];
  const lines = linesOf(text);
  if (lines.length === 0) return "";
  const shown = lines.slice(0, HOVERED).map((line) => `${sign} ${line}`);
  if (lines.length > HOVERED) shown.push(`… ${counted(lines.length - HOVERED, "more line")}`);
  return fenced(shown.join("\n"), "diff");
}

/** A block of code that its own text cannot end. */
export function fenced(text: string, language: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map((run) => run[0].length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}

export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

export function shortened(line: string, most = SHOWN): string {
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`;
}
