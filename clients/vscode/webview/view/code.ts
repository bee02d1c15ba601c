/** Blocks of code, diffs and output. */

import type { Part } from "../state/blocks";
import { harmless } from "../state/harmless";
import { append, h, icon, iconButton } from "./dom";
import { highlighted } from "./highlight";
import type { Shown } from "./shown";

/** Characters of an output, and lines of a diff, that are shown; the editor shows the rest. */
const OUTPUT = 60_000;
const DIFF = 1_500;

let asked = 0;

/** A block of code with what can be done with it. `open`: it still grows, and is plain until then. */
export function codeBlock(shown: Shown, text: string, info: string, open: boolean): HTMLElement {
  const language = /^[^\s{:]*/.exec(info.trim())?.[0] ?? "";
  const code = h("code", {}, ...(open ? [document.createTextNode(text)] : highlighted(text, language)));
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
  return block;
}

/** A part of what a tool call shows. */
export function partOf(shown: Shown, part: Part, title: string): Node {
  if (part.type === "diff") return diff(shown, part.patch.text, part.changes.map((one) => one.path));
  return output(shown, part.content.text, title);
}

export function output(shown: Shown, text: string, title: string): HTMLElement {
  const all = harmless(text).trimEnd();
  const cut = all.length > OUTPUT;
  const half = OUTPUT / 2;
  const said = cut
    ? `${all.slice(0, half)}\n… ${(all.length - OUTPUT).toLocaleString("en")} characters …\n${all.slice(-half)}`
    : all;
  const pre = h("pre", { class: "output", tabindex: 0, role: "group", "aria-label": "Output" }, said);
  if (!cut) return pre;
  return h("div", {}, pre, whole(shown, title, all, "plaintext"));
}

function whole(shown: Shown, title: string, text: string, language: string): HTMLElement {
  return h(
    "button",
    { type: "button", class: "link-button", onclick: () => shown.post({ type: "text", title, text, language }) },
    icon("go-to-file"),
    " Show all of it in an editor",
  );
}

/** The text that goes and the text that comes, of an edit that was not worked out yet. */
export function sides(removed: string, added: string): HTMLElement {
  const box = h("div", { class: "diff", tabindex: 0, role: "group", "aria-label": "Changes" });
  const rows = (text: string, sign: string, kind: string) => {
    if (text === "") return;
    for (const line of harmless(text).replace(/\n$/, "").split("\n").slice(0, DIFF)) {
      box.append(h("span", { class: `line ${kind}` }, `${sign}${line}\n`));
    }
  };
  rows(removed, "-", "del");
  rows(added, "+", "add");
  return box;
}

/** A unified diff as the server made it; a click on a line opens its place. */
export function diff(shown: Shown, patch: string, paths: readonly string[]): HTMLElement {
  const text = harmless(patch);
  const lines = text.split("\n");
  if (lines[lines.length - 1] === "") lines.pop();
  const box = h("div", { class: "diff", tabindex: 0, role: "group", "aria-label": "Changes" });
  let path = paths[0];
  let file = -1;
  let line = 0;
  for (const one of lines.slice(0, DIFF)) {
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
  if (lines.length <= DIFF) return box;
  return h("div", {}, box, whole(shown, "Changes", text, "diff"));
}
