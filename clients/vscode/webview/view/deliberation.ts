/** A deliberation as a card: a column for each node, who disagrees with whom, and the ruling. */

import { harmless } from "../state/harmless";
import { h, icon, iconButton } from "./dom";
import type { Shown } from "./shown";
import type { Deliberation } from "../../src/wire/generated";

type Node = Deliberation["nodes"][number];
type Tension = Deliberation["tensions"][number];
type Ruling = NonNullable<Deliberation["ruling"]>;

const LOOKS: Record<string, string> = {
  APPROVE: "good", APPROVED: "good", CAVEATED: "asks", DEADLOCK: "asks", REJECT: "bad", REJECTED: "bad", ABSTAIN: "dim",
};
const SIGNS: Record<string, string> = {
  APPROVE: "pass", APPROVED: "pass", CAVEATED: "warning", DEADLOCK: "lock", REJECT: "error", REJECTED: "error",
  ABSTAIN: "circle-slash",
};

export function deliberationCard(shown: Shown, card: Deliberation): HTMLElement {
  return h("div", { class: "magi", role: "group", "aria-label": `MAGI: ${card.line}` },
    h("div", { class: "magi-question" }, h("strong", {}, `MAGI, ${card.mode}: `), harmless(card.question)),
    h("div", { class: "magi-line" }, `${card.voted} of 3 voted.${card.ruling ? "" : ` ${card.line}`}`),
    h("div", { class: "magi-nodes" }, ...card.nodes.map((node) => column(shown, node))),
    card.tensions.length > 0 && tensions(card),
    card.ruling !== null && ruling(card, card.ruling),
    card.spent !== "" && h("div", { class: "dim" }, card.spent));
}

function verdict(word: string): HTMLElement {
  return h("span", { class: `magi-verdict ${LOOKS[word] ?? ""}` }, icon(SIGNS[word] ?? "circle-outline"), ` ${word}`);
}

function column(shown: Shown, node: Node): HTMLElement {
  const { sessionId } = node;
  const open = () => sessionId && shown.post({ type: "child", action: "show", sessionId });
  const working = node.status.startsWith("is ");
  return h("section", { class: node.dissents ? "magi-node dissents" : "magi-node", "aria-label": `${node.name}, ${node.role}` },
    h("div", { class: "magi-name" },
      h("strong", {}, node.name),
      sessionId ? iconButton("comment-discussion", `Open the transcript of ${node.name}`, open) : ""),
    h("div", { class: "dim" }, node.role),
    node.verdict ? h("div", {}, verdict(node.verdict)) : "",
    node.verdict ? meter(node) : "",
    node.before !== "" && h("div", { class: "dim" }, `before: ${node.before}`),
    node.dissents && h("div", { class: "magi-dissents" }, "DISSENTS"),
    node.status !== "" && h("div", { class: "dim" },
      working ? icon("loading", "codicon-modifier-spin busy") : "", working ? " " : "", harmless(node.status)),
    ...[node.summary, ...node.own, ...node.flags].filter(Boolean).map((text) => h("p", {}, harmless(text))));
}

function meter(node: Node): HTMLElement {
  const percent = node.confidence ?? 0;
  return h("div", { class: "magi-confidence" },
    h("meter", { min: 0, max: 100, value: percent, "aria-hidden": "true" }), ` ${node.tier} (${percent} %)`);
}

// --- who disagrees with whom ---------------------------------------------------------------------

const CORNERS: Record<string, [number, number]> = { melchior: [60, 84], balthasar: [160, 20], casper: [260, 84] };
const WORDS: Record<string, string> = { agree: "agree", beside: "one side", apart: "apart", against: "AGAINST" };

/** A triangle with the nodes at its corners; a line is said in words, too, and never by its colour alone. */
function tensions(card: Deliberation): HTMLElement {
  const told = card.tensions.filter((one) => one.kind !== "agree");
  const picture = svg("svg", {
    viewBox: "0 0 320 104", role: "img", class: "magi-picture",
    "aria-label": card.tensions.map((one) => one.line).join(". "),
  });
  for (const one of card.tensions) picture.append(...line(one));
  for (const node of card.nodes) picture.append(...corner(node));
  return h("div", { class: "magi-tensions" }, picture,
    told.length > 0 && h("ul", {}, ...told.map((one) => h("li", {}, one.line,
      ...one.said.map((text) => h("div", { class: "dim" }, harmless(text)))))));
}

function corner(node: Node): Element[] {
  const [x, y] = at(node.node);
  const above = y < 50;
  const name = svg("text", { x, y: above ? y - 9 : y + 17, "text-anchor": "middle" });
  name.textContent = node.name;
  const dot = svg("circle", { cx: x, cy: y, r: 5, class: `magi-dot ${LOOKS[node.verdict ?? ""] ?? ""}` });
  return [dot, name];
}

const at = (node: string | undefined): [number, number] => CORNERS[node ?? ""] ?? [0, 0];

function line(one: Tension): Element[] {
  const [from, to] = [at(one.between[0]), at(one.between[1])];
  const stroke = svg("line", { x1: from[0], y1: from[1], x2: to[0], y2: to[1], class: `magi-tie ${one.kind}` });
  const word = svg("text", {
    x: (from[0] + to[0]) / 2, y: (from[1] + to[1]) / 2 + 4, "text-anchor": "middle", class: `magi-word ${one.kind}`,
  });
  word.textContent = WORDS[one.kind] ?? one.kind;
  return [stroke, word];
}

function svg(tag: string, attributes: Record<string, string | number>): Element {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  return element;
}

// --- the ruling ----------------------------------------------------------------------------------

function ruling(card: Deliberation, about: Ruling): HTMLElement {
  const list = (head: string, lines: readonly string[]) => lines.map((text) => h("li", {}, h("span", { class: "dim" }, `${head} `), harmless(text)));
  return h("div", { class: "magi-ruling" },
    h("div", {}, "RULING: ", verdict(about.final), harmless(card.line.slice(about.final.length))),
    h("div", {}, harmless(about.why)),
    h("ul", {},
      ...list("Dissent:", about.dissent),
      ...list("Condition", about.conditions),
      ...list("Way on", about.options),
      ...list("May fail:", about.mayFail),
      ...list("Next step:", [about.nextStep]),
      ...list("Warning:", about.warnings)),
    ...about.safety.map((text) => h("div", { class: "magi-safety" }, icon("shield"), " Safety: ", text)));
}
