/**
 * A question as a card. What stands there is what would run; much white space in it is counted, and
 * a part that is longer than its box says so, lest an end be overlooked. The first choice refuses;
 * Enter and Escape never allow, and for a moment after it appeared nothing does.
 */

import type { Block, Part, Question } from "../state/blocks";
import { asker, choices, covers } from "../state/questions";
import type { Choice } from "../state/questions";
import { unpadded } from "../state/harmless";
import { answer, extent } from "../state/text";
import { partOf } from "./code";
import { fill, h, icon, newId } from "./dom";
import type { Child } from "./dom";
import type { Shown } from "./shown";
import { withCode } from "./spans";

/** Milliseconds in which a click or key was meant for something else. */
const GUARD = 600;
/** Lines of what an answer would allow that are not folded. */
const MOST = 4;

export function questionCard(shown: Shown, block: Block, element: HTMLElement): () => void {
  const born = performance.now();
  let drawn = "";
  return () => {
    const { question } = block.data;
    const state = JSON.stringify([block.data, question && asker(shown.t, question), question && covers(shown.t, question)]);
    if (state === drawn) return;
    drawn = state;
    const focus = element.contains(document.activeElement) ? document.activeElement?.getAttribute("data-choice") : undefined;
    const reason = element.querySelector<HTMLInputElement>("input.reason")?.value ?? "";
    const open = question !== undefined && !block.data.outcome && shown.t.open.has(question.interactionId);
    element.classList.toggle("open", open);
    if (open) drawOpen(shown, block, question, element, reason, born);
    else drawAnswered(block, element);
    if (focus) element.querySelector<HTMLElement>(`[data-choice="${focus}"]`)?.focus();
  };
}

function drawAnswered(block: Block, element: HTMLElement): void {
  const { data } = block;
  const said = answer(data) || "no longer open";
  element.removeAttribute("role");
  element.removeAttribute("aria-labelledby");
  fill(
    element,
    icon(data.outcome === "allowed" ? "pass" : data.outcome === "refused" ? "circle-slash" : "question", "dim"),
    h("span", {}, h("span", { class: "asked-title" }, data.question?.title ?? "A question"), h("span", { class: "dim" }, `  ${said}`)),
  );
}

function drawOpen(shown: Shown, block: Block, question: Question, element: HTMLElement, reason: string, born: number): void {
  const label = newId("question");
  const by = asker(shown.t, question);
  const why = h("input", {
    class: "reason", type: "text", "aria-label": "Why not? The agent reads it", placeholder: "Why not? The agent reads it", maxlength: 10_000,
    "data-choice": "reason",
  });
  why.value = reason;
  const give = (choice: Choice) => {
    if (performance.now() - born < GUARD) return shown.say("This question has only just appeared: read it, then answer");
    const { interactionId, sessionId } = question;
    const { outcome, scope } = choice;
    shown.post({ type: "answer", interactionId, sessionId, outcome, scope, reason: outcome === "refuse" ? why.value.trim() : "" });
  };
  const [refuse] = choices(question);
  why.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.isComposing && refuse) give(refuse);
  });
  element.setAttribute("role", "group");
  element.setAttribute("aria-labelledby", label);
  fill(
    element,
    h("div", { class: "question-head", id: label }, icon("question", "asks"), h("span", {}, by ? `${by} asks` : "The agent asks")),
    readToEnd(h("pre", { class: "question-title", tabindex: 0, role: "group", "aria-label": "What would run" }, unpadded(question.title))),
    ...(question.content ?? []).map((part) => readToEnd(partOf(shown, plain(part), question.title))),
    h("div", { class: "rule" }, icon("law"), " asked because: ", ...withCode(question.rule)),
    allows(shown, block, question),
    h("div", { class: "answers" }, why, ...choices(question).map((choice) => choiceButton(shown, choice, give))),
  );
}

function plain(part: Part): Part {
  if (part.type === "diff") return part;
  return { ...part, content: { ...part.content, text: unpadded(part.content.text) } };
}

/** The box, and below it, until its end was in sight, that there is more. */
function readToEnd(part: HTMLElement): HTMLElement {
  const box = part.matches("pre, .diff") ? part : part.querySelector<HTMLElement>("pre, .diff");
  if (!box) return part;
  const more = h("div", { class: "unread", hidden: true }, "↓ It goes on: scroll to read all of it");
  const look = () => {
    more.hidden = box.scrollTop + box.clientHeight >= box.scrollHeight - 2;
  };
  box.addEventListener("scroll", look, { passive: true });
  new ResizeObserver(look).observe(box);
  return h("div", {}, part, more);
}

function choiceButton(shown: Shown, choice: Choice, give: (choice: Choice) => void): HTMLElement {
  const allows = choice.outcome === "allow";
  const made = h(
    "button",
    { type: "button", class: `button ${allows ? "secondary" : ""}`.trim(), "data-choice": `${choice.outcome} ${choice.scope}`, onclick: () => give(choice) },
    choice.label,
  );
  made.addEventListener("keydown", (event) => {
    if (!allows || event.key !== "Enter") return;
    event.preventDefault();
    shown.say("Enter never allows: press Space, or click");
  });
  return made;
}

/** What an answer for the session or the project would allow besides. */
function allows(shown: Shown, block: Block, question: Question): Child {
  const lines = covers(shown.t, question);
  if (question.form) return undefined;
  if (!question.remember?.length) return h("div", { class: "covers" }, `${extent(block.data)}.`);
  if (lines.length === 0) return undefined;
  const first = lines.length > MOST + 1 ? lines.slice(0, MOST) : lines;
  const rest = lines.slice(first.length);
  const list = (some: string[]) => h("ul", {}, ...some.map((line) => h("li", {}, ...withCode(line))));
  return h(
    "div",
    { class: "covers" },
    `${extent(block.data)}:`,
    list(first),
    rest.length > 0 && h("details", {}, h("summary", {}, `and ${rest.length} more`), list(rest)),
  );
}
