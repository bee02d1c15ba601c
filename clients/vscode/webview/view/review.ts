/** The line above the input that says what waits for a decision in files, of whatever session. */

import type { Offered } from "../../src/transcript/messages";
import { button, fill, h, icon } from "./dom";
import type { Shown } from "./shown";

export function drawReview(shown: Shown, element: HTMLElement, { changes, files }: { changes: number; files: number }): void {
  element.hidden = changes === 0;
  if (element.hidden) return fill(element);
  const act = (words: string, command: Offered, title: string) => {
    const made = button(words, () => shown.post({ type: "run", command }), "secondary");
    made.title = title;
    return made;
  };
  const what = `${changes} change${changes === 1 ? "" : "s"} in ${files} file${files === 1 ? "" : "s"}`;
  const focused = element.contains(document.activeElement) ? document.activeElement?.textContent : undefined;
  fill(
    element,
    h("button", { type: "button", class: "link-button review-count", title: "Go to the next change", onclick: () => shown.post({ type: "run", command: "nextChange" }) }, icon("diff"), ` ${what}`),
    act("Review", "reviewAll", "Show all changes that wait for a decision"),
    act("Accept All", "acceptAll", "Keep all changes in all files"),
    act("Reject All", "rejectAll", "Take all changes in all files back"),
  );
  if (focused) [...element.querySelectorAll("button")].find((one) => one.textContent === focused)?.focus();
}
