/** How much of a long text is drawn. An editor, which is made for that, shows the rest. */

import { harmless } from "../state/harmless";
import { h, icon } from "./dom";
import type { Child } from "./dom";
import type { Shown } from "./shown";

/** Characters, and lines, of one text that are drawn. */
export const CHARACTERS = 60_000;
export const LINES = 1_500;

/** A text's beginning and end, with how much is left out between them; all of it if that is not much. */
export function ends(all: string, most = CHARACTERS): string {
  if (all.length <= most) return all;
  const half = most / 2;
  const from = all.slice(0, half);
  const to = all.slice(-half);
  return `${uncut(from)}\n… ${(all.length - most).toLocaleString("en")} characters …\n${uncut(to)}`;
}

/** The first lines of a text that are drawn, and whether that is all of them. */
export function firstLines(text: string): { lines: string[]; all: boolean } {
  const all = text.length <= CHARACTERS;
  const lines = (all ? text : uncut(text.slice(0, CHARACTERS))).split("\n");
  return { lines: lines.slice(0, LINES), all: all && lines.length <= LINES };
}

/** Text of a message as it was written, and a way to all of it if that is too much. */
export function plain(shown: Shown, title: string, text: string): Child[] {
  const all = harmless(text).trimEnd();
  return [ends(all), all.length > CHARACTERS && toEditor(shown, title, () => all, "plaintext")];
}

/** A button that shows a text, as it is then, in an editor. */
export function toEditor(shown: Shown, title: string, text: () => string, language: string): HTMLElement {
  return h(
    "button",
    { type: "button", class: "link-button", onclick: () => shown.post({ type: "text", title, text: text(), language }) },
    icon("go-to-file"),
    " Show all of it in an editor",
  );
}

/** A text that was cut anywhere, without half a character at its ends. */
export function uncut(text: string): string {
  return text.replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, "");
}
