/** Prompts that the agent has not taken up yet: shown, moved, taken back, dropped. */

import type { Waiting } from "../../src/wire/generated";
import { oneLine } from "../state/harmless";
import { fill, h, icon, iconButton } from "../view/dom";
import type { Shown } from "../view/shown";

/** Draws the list; `takeBack` puts the words of a prompt into the input. */
export function drawQueue(shown: Shown, element: HTMLElement, takeBack: (waiting: Waiting) => void): void {
  const { waiting } = shown.t;
  element.hidden = waiting.length === 0;
  const ids = waiting.map((one) => one.messageId);
  const move = (id: string, by: number) => {
    const at = ids.indexOf(id);
    const rest = ids.filter((one) => one !== id);
    rest.splice(Math.max(0, at + by), 0, id);
    shown.post({ type: "reorder", order: rest });
  };
  const focused = element.contains(document.activeElement) ? document.activeElement?.getAttribute("data-queue") : null;
  fill(element, h("div", { class: "queue-head" }, `Waiting: ${waiting.length}`), h("ol", { role: "list" }, ...waiting.map((one, at) => row(shown, one, at, waiting.length, move, takeBack))));
  if (focused) element.querySelector<HTMLElement>(`[data-queue="${CSS.escape(focused)}"]`)?.focus();
}

function row(
  shown: Shown,
  one: Waiting,
  at: number,
  count: number,
  move: (id: string, by: number) => void,
  takeBack: (waiting: Waiting) => void,
): HTMLElement {
  const words = oneLine(one.text);
  const mine = shown.t.get(one.messageId)?.kind !== "mail";
  const act = (name: string, label: string, run: () => void) => {
    const made = iconButton(name, `${label}: ${words.slice(0, 60)}`, run);
    made.title = label;
    made.dataset.queue = `${label} ${one.messageId}`;
    return made;
  };
  return h(
    "li",
    {},
    icon(one.delivery === "steer" ? "debug-step-into" : "clock", "dim"),
    h("span", { class: "queue-words", title: one.delivery === "steer" ? "Joins the turn before its next request" : "Has a turn of its own" }, words),
    h(
      "span",
      { class: "aside" },
      at > 0 && act("arrow-up", "Earlier", () => move(one.messageId, -1)),
      at < count - 1 && act("arrow-down", "Later", () => move(one.messageId, 1)),
      mine && act("edit", "Take back into the input", () => takeBack(one)),
      act("trash", "Drop", () => shown.post({ type: "drop", messageId: one.messageId })),
    ),
  );
}
