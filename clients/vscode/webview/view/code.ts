/** Blocks of code, diffs and output. */

import type { Part } from "../state/blocks";
import { harmless } from "../state/harmless";
import { CHARACTERS, ends, firstLines, toEditor } from "./bounded";
import { append, h, iconButton } from "./dom";
import type { Child } from "./dom";
import { highlighted } from "./highlight";
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
export function partOf(shown: Shown, part: Part, title: string): Node {
  if (part.type === "diff") return diff(shown, part.patch.text, part.changes.map((one) => one.path));
  return output(shown, part.content.text, title);
}

export function output(shown: Shown, text: string, title: string): HTMLElement {
  const all = harmless(text).trimEnd();
  const pre = h("pre", { class: "output", tabindex: 0, role: "group", "aria-label": "Output" }, ends(all));
  if (all.length <= CHARACTERS) return pre;
  return h("div", {}, pre, toEditor(shown, title, () => all, "plaintext"));
}

/** The text that goes and the text that comes, of an edit that was not worked out yet. */
export function sides(shown: Shown, removed: string, added: string): HTMLElement {
  const box = h("div", { class: "diff", tabindex: 0, role: "group", "aria-label": "Changes" });
  const rows = (text: string, sign: string, kind: string): Child => {
    if (text === "") return undefined;
    const side = harmless(text).replace(/\n$/, "");
    const { lines, all } = firstLines(side);
    for (const line of lines) box.append(h("span", { class: `line ${kind}` }, `${sign}${line}\n`));
    return !all && toEditor(shown, sign === "-" ? "Before" : "After", () => side, "plaintext");
  };
  const rest = [rows(removed, "-", "del"), rows(added, "+", "add")];
  return rest.some(Boolean) ? h("div", {}, box, ...rest) : box;
}

/** A unified diff as the server made it; a click on a line opens its place. */
export function diff(shown: Shown, patch: string, paths: readonly string[]): HTMLElement {
  const text = harmless(patch);
  const { lines, all } = firstLines(text.replace(/\n$/, ""));
  const box = h("div", { class: "diff", tabindex: 0, role: "group", "aria-label": "Changes" });
  let path = paths[0];
  let file = -1;
  let line = 0;
  for (const one of lines) {
    const hunk = /^@@ -[\d,]+ \+(\d+)/.exec(one);
    if (one.startsWith("--- ")) path = paths[(file += 1)] ?? path;
    if (hunk) line = Number(hunk[1]);
    const kind = hunk ? "hunk" : /^(?:---|\+\+\+|diff|index|new|deleted|rename|similarity|old) /.test(one) ? "head" : one[0];
    const row = h("span", { class: `line ${kind === "+" ? "add" : kind === "-" ? "del" : kind === "hunk" || kind === "head" ? kind : ""}`.trim() }, `${one}\n`);
    if (path && kind !== "head" && kind !== "hunk") {
      row.dataset.path = path;
      row.dataset.line = String(Math.max(1, line));
      if (kind !== "-") line += 1;
    }
    box.append(row);
  }
  box.addEventListener("click", (event) => {
    const row = (event.target as Element).closest<HTMLElement>(".line");
    if (!row?.dataset.path || document.getSelection()?.isCollapsed === false) return;
    shown.post({ type: "open", path: row.dataset.path, line: Number(row.dataset.line) });
  });
  if (all) return box;
  return h("div", {}, box, toEditor(shown, "Changes", () => text, "diff"));
}
