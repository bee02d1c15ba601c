/** The line above a transcript: what the session is, does and costs. */

import { parentOf } from "../state/blocks";
import { oneLine } from "../state/harmless";
import { short, spentOf, words } from "../state/sums";
import type { Transcript } from "../state/transcript";
import { childName } from "../state/words";
import { fill, h, icon } from "./dom";
import type { Child } from "./dom";
import type { Shown } from "./shown";

export interface Connection {
  state: string;
  message: string;
}

/** Draws the line. `parent`: what the session above is called, of a child. */
export function drawHeader(shown: Shown, element: HTMLElement, parent: string, connection: Connection): void {
  const { t } = shown;
  const above = parentOf(t.session);
  const child = t.children.get(t.session);
  const title = oneLine((child && (child.name || child.said)) || t.title || "New session");
  fill(
    element,
    above !== undefined && h(
      "button",
      { type: "button", class: "link-button", title: "Its parent", onclick: () => shown.post({ type: "show", sessionId: above }) },
      icon("arrow-up"), ` ${parent || "parent"}`,
    ),
    stateOf(t, connection),
    h("span", { class: "session-title", title }, child ? `${childName(child)}` : title),
    h("span", { class: "sums" }, sumsOf(t)),
    agents(t),
  );
}

function stateOf(t: Transcript, connection: Connection): HTMLElement {
  if (connection.state !== "running") return h("span", { class: "state dim", title: connection.message }, icon("debug-disconnect"), ` ${said(connection.state)}`);
  if (t.open.size > 0) return h("span", { class: "state asks" }, icon("question"), " asks");
  if (t.state === "running") return h("span", { class: "state busy" }, icon("loading", "codicon-modifier-spin"), ` ${oneLine(t.progress) || "working"}`);
  if (t.state === "requires_action") return h("span", { class: "state asks" }, icon("question"), " waiting");
  return h("span", { class: "state visually-hidden" }, "idle");
}

function said(state: string): string {
  return { starting: "starting", stopped: "off", missing: "no server", silent: "not answering", dead: "ended" }[state] ?? state;
}

function sumsOf(t: Transcript): string {
  const full = t.window > 0 && t.context > 0 ? `${Math.floor((100 * t.context) / t.window)}% of ${short(t.window)}` : "";
  const below = spentOf({}, {});
  for (const child of t.children.values()) {
    if (child.parentSessionId !== t.session) continue;
    const one = spentOf(child.treeUsage, child.treeCost);
    for (const [kind, count] of Object.entries(one.usage)) below.usage[kind] = (below.usage[kind] ?? 0) + count;
    below.amount += one.amount;
    below.unpriced += one.unpriced;
  }
  const theirs = words(below).join(" · ");
  return [...words(t.spent), full, theirs && `agents ${theirs}`].filter(Boolean).join(" · ");
}

/** How many agents below work and ask. */
function agents(t: Transcript): Child {
  let working = 0;
  let asking = 0;
  for (const child of t.children.values()) {
    if (!child.sessionId.startsWith(`${t.session}/`)) continue;
    if (child.state === "running" || child.state === "queued") working += 1;
    if (child.state === "waiting") asking += 1;
  }
  if (working + asking === 0) return undefined;
  const words = [working && `${working} work${working === 1 ? "s" : ""}`, asking && `${asking} ask${asking === 1 ? "s" : ""}`];
  return h("span", { class: asking ? "asks" : "dim" }, icon("organization"), ` ${words.filter(Boolean).join(", ")}`);
}
