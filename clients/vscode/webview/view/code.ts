/** Blocks of code, diffs and output. */

import type { Part } from "../state/blocks";
import { harmless } from "../state/harmless";
import { CHARACTERS, ends, firstLines, toEditor } from "./bounded";
import { append, h, iconButton } from "./dom";
import type { Child } from "./dom";
import { highlighted, highlightedLines } from "./highlight";
import type { Shown } from "./shown";

let asked = 0;

/** A block of code with what can be done with all of it. `open`: it still grows, and is plain until then. */
export function codeBlock(shown: Shown, text: string, info: string, open: boolean): HTMLElement {
  const language = /^[^\s{:]*/.exec(info.trim())?.[0] ?? "";
  const { lines, all } = firstLines(text);
  const first = all ? text : lines.join("\n");
  const code = h("code", {}, ...(open ? [document.createTextNode(text)] : highlighted(first, language)));
  const status = h("span", { class: "code-status", role: "status" });
  const run = (action: "copy" | "insert" | "apply") => () => {
    asked += 1;
    status.dataset.code = String(asked);
    shown.post({ type: "code", action, id: asked, text, info });
  };
  const actions = h("span", { class: "code-actions" });
  if (!open) {
    append(actions, [
      iconButton("git-pull-request-go-to-changes", "Apply, under review", run("apply")),
      iconButton("insert", "Insert at the cursor", run("insert")),
      iconButton("copy", "Copy", run("copy")),
    ]);
  }
  const bar = h("div", { class: "code-bar" }, h("span", { class: "code-language" }, info.trim() || "text"), status, actions);
  const pre = h("pre", { tabindex: 0, role: "group", "aria-label": `Code ${language}`.trim() }, code);
  const block = h("div", { class: "code", "data-info": info }, bar, pre);
  if (open) block.setAttribute("data-open", "");
  else if (!all) block.append(h("div", { class: "code-rest" }, toEditor(shown, "Code", () => text, language)));
  return block;
}

/** A part of what a tool call shows. */
export function partOf(shown: Shown, part: Part, title: string): HTMLElement {
  if (part.type === "diff") return diff(shown, part.patch.text, part.changes.map((one) => one.path));
  return output(shown, part.content.text, title);
}

export function output(shown: Shown, text: string, title: string): HTMLElement {
  const all = harmless(text).trimEnd();
  const pre = h("pre", { class: "output", tabindex: 0, role: "group", "aria-label": "Output" }, ends(all));
  if (all.length <= CHARACTERS) return pre;
  return h("div", {}, pre, toEditor(shown, title, () => all, "plaintext"));
}

/** The text that goes and the text that comes, of an edit of this file that was not worked out yet. */
export function sides(shown: Shown, removed: string, added: string, path: string): HTMLElement {
  const box = diffBox();
  const rows = (text: string, sign: "-" | "+"): Child => {
    if (text === "") return undefined;
    const side = harmless(text).replace(/\n$/, "");
    const { lines, all } = firstLines(side);
    append(box, highlightedLines(lines, path).map((words) => row(sign, words)));
    return !all && toEditor(shown, sign === "-" ? "Before" : "After", () => side, "plaintext");
  };
  const rest = [rows(removed, "-"), rows(added, "+")];
  return rest.some(Boolean) ? h("div", {}, box, ...rest) : box;
}

/** A unified diff as the server made it; a click on a line opens its place. */
export function diff(shown: Shown, patch: string, paths: readonly string[]): HTMLElement {
  const text = harmless(patch);
  const { lines, all } = firstLines(text.replace(/\n$/, ""));
  const box = diffBox();
  let path = paths[0] ?? "";
  let file = -1;
  for (let at = 0; at < lines.length; ) {
    const one = lines[at] ?? "";
    if (one.startsWith("--- ")) path = paths[(file += 1)] ?? path;
    const hunk = HUNK.exec(one);
    box.append(h("span", { class: `line ${hunk ? "hunk" : "head"}` }, `${one}\n`));
    at += 1;
    if (!hunk) continue;
    const own = linesOfHunk(lines, at, hunk);
    append(box, hunkRows(own, path, Number(hunk[2])));
    at += own.length;
  }
  box.addEventListener("click", (event) => {
    const clicked = (event.target as Element).closest<HTMLElement>(".line");
    if (!clicked?.dataset.path || document.getSelection()?.isCollapsed === false) return;
    shown.post({ type: "open", path: clicked.dataset.path, line: Number(clicked.dataset.line) });
  });
  if (all) return box;
  return h("div", {}, box, toEditor(shown, "Changes", () => text, "diff"));
}

function diffBox(): HTMLElement {
  return h("div", { class: "diff", tabindex: 0, role: "group", "aria-label": "Changes" });
}

/** How many lines of the old text, the first line in the new one, and how many of that. */
const HUNK = /^@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;
const KINDS: Readonly<Record<string, string>> = { "+": "add", "-": "del" };

/** The lines from `at` on that are the hunk's, as many as it says. */
function linesOfHunk(lines: readonly string[], at: number, [, olds, , news]: RegExpExecArray): string[] {
  let [old, fresh] = [Number(olds ?? 1), Number(news ?? 1)];
  let end = at;
  for (; end < lines.length; end += 1) {
    const sign = lines[end]?.[0] ?? " ";
    if (!"-+ \\".includes(sign) || (sign !== "\\" && old <= 0 && fresh <= 0)) break;
    if (sign === "-" || sign === " ") old -= 1;
    if (sign === "+" || sign === " ") fresh -= 1;
  }
  return lines.slice(at, end);
}

/** The rows of a hunk. The text that goes and the one that comes have their colours apart from each other. */
function hunkRows(lines: readonly string[], path: string, first: number): HTMLElement[] {
  const side = (sign: string) => highlightedLines(lines.filter((line) => line[0] !== sign && line[0] !== "\\").map((line) => line.slice(1)), path);
  const [old, fresh] = [side("+"), side("-")];
  let number = first;
  return lines.map((line) => {
    const sign = line[0] ?? "";
    if (sign === "\\") return row("", [line]);
    const before = sign === "+" ? undefined : old.shift();
    const after = sign === "-" ? undefined : fresh.shift();
    const made = row(sign, after ?? before ?? []);
    if (path) Object.assign(made.dataset, { path, line: String(Math.max(1, number)) });
    if (sign !== "-") number += 1;
    return made;
  });
}

/** A line of a diff, with its sign in front. */
function row(sign: string, words: readonly Child[]): HTMLElement {
  return h("span", { class: `line ${KINDS[sign] ?? ""}`.trim() }, sign, ...words, "\n");
}
