/** The line above a transcript: what the session is, does and costs. */

import { parentOf } from "../state/blocks";
import { oneLine } from "../state/harmless";
import { short, spentOf, words } from "../state/sums";
import type { Transcript } from "../state/transcript";
import { childName, promptWords } from "../state/words";
import { fill, h, icon, iconButton } from "./dom";
import type { Child } from "./dom";
import type { Shown } from "./shown";

export interface Connection {
  state: string;
  message: string;
}

/** What the session above is called, of a child; and the folder, where a window may have several. */
export interface About {
  parent: string;
  folder: string;
}

export function drawHeader(shown: Shown, element: HTMLElement, about: About, connection: Connection): void {
  const { t } = shown;
  const above = parentOf(t.session);
  const child = t.children.get(t.session);
  const title = oneLine((child && (child.name || child.said)) || t.title || firstWords(t) || "New session");
  fill(
    element,
    above !== undefined && h(
      "button",
      { type: "button", class: "link-button", title: "Its parent", onclick: () => shown.post({ type: "show", sessionId: above }) },
      icon("arrow-up"), ` ${about.parent || "parent"}`,
    ),
    stateOf(t, connection),
    h("span", { class: "session-title", title }, child ? `${childName(child)}` : title),
    about.folder !== "" && h("span", { class: "folder dim", title: "The folder of this session" }, icon("folder"), ` ${about.folder}`),
    agents(t),
  );
}

/** Draws how full the window of the model is, and what the session took. */
export function drawSums(shown: Shown, element: HTMLElement): void {
  const { t } = shown;
  const sums = sumsOf(t);
  element.hidden = sums === "";
  if (element.hidden) return fill(element);
  fill(element, meter(t), h("span", { class: "sums", title: sums }, sums), compact(shown));
}

function meter(t: Transcript): Child {
  if (!(t.window > 0 && t.context > 0)) return undefined;
  const label = `The model's window: ${short(t.context)} of ${short(t.window)} tokens are used`;
  return h("meter", { min: 0, max: t.window, low: 0.6 * t.window, high: 0.85 * t.window, optimum: 0, value: Math.min(t.context, t.window), title: label, "aria-label": label });
}

/** As long as there is something that a summary could take the place of. */
function compact(shown: Shown): Child {
  if (!(shown.t.context > 0) || shown.t.state !== "idle") return undefined;
  return iconButton("fold", "Compact the conversation: a summary for the model takes the place of older turns", () => shown.post({ type: "compact" }));
}

/** What a session without a title is called: the first line of its first prompt. */
function firstWords(t: Transcript): string {
  if (t.floor > 1) return "";
  const first = t.blocks.find((block) => block.kind === "user" && block.data.queue !== "dropped");
  return first ? (promptWords(first).trim().split("\n")[0] ?? "") : "";
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
  const full = t.window > 0 && t.context > 0 ? `${short(t.context)} of ${short(t.window)} in the window` : "";
  const below = spentOf({}, {});
  for (const child of t.children.values()) {
    if (child.parentSessionId !== t.session) continue;
    const one = spentOf(child.treeUsage, child.treeCost);
    for (const [kind, count] of Object.entries(one.usage)) below.usage[kind] = (below.usage[kind] ?? 0) + count;
    below.amount += one.amount;
    below.unpriced += one.unpriced;
  }
  const theirs = words(below).join(" · ");
  return [full, ...words(t.spent), theirs && `agents ${theirs}`].filter(Boolean).join(" · ");
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
