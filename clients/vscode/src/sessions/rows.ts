import type { Child, CompletionStatus, Cost, SessionInfo, Summary } from "../wire/generated";
import { option } from "./summary";

/** What a row of a tree shows; `icon` names one of VS Code's. */
export interface Row {
  label: string;
  description: string;
  icon: string;
  tooltip: string;
  /** For `when` clauses of menus. */
  context: string;
}

/** Milliseconds after which no server goes on by itself with a turn that another one left open. */
const STALE = 3_600_000;

const SESSION_WORDS = { idle: "", running: "works", requires_action: "asks", interrupted: "interrupted" };
const SESSION_ICONS = { idle: "comment", running: "loading~spin", requires_action: "bell-dot", interrupted: "debug-pause" };

/** `alive`: the server runs, so that what it told of the session holds still. */
export function sessionRow(session: SessionInfo, now: number, alive: boolean): Row {
  const state = stateOf(session, now, alive);
  const age = session.updatedAt ? ago(Date.parse(session.updatedAt), now) : "";
  const turns = session.turns === 1 ? "1 turn" : `${session.turns} turns`;
  return {
    label: titleOf(session),
    description: [SESSION_WORDS[state], age].filter(Boolean).join(" · "),
    icon: SESSION_ICONS[state],
    tooltip: [titleOf(session), `Agent ${session.agent}`, turns, session.root ?? session.cwd].join("\n"),
    context: state === "idle" || state === "interrupted" ? "session" : "session.running",
  };
}

/** The state of a session is that of its log: its turn may be open there, and nobody work on it. */
function stateOf({ state, updatedAt }: SessionInfo, now: number, alive: boolean): keyof typeof SESSION_WORDS {
  if (state !== "running" && state !== "requires_action") return "idle";
  if (!alive) return "interrupted";
  const stale = updatedAt ? now - Date.parse(updatedAt) > STALE : false;
  return state === "running" && stale ? "interrupted" : state;
}

export function titleOf(session: SessionInfo): string {
  return session.title?.trim() || "New session";
}

const CHILD_ICONS: Record<Child["state"], string> = {
  queued: "clock",
  running: "loading~spin",
  waiting: "bell-dot",
  completed: "check",
  failed: "error",
  cancelled: "circle-slash",
  closed: "archive",
};

const CHILD_WORDS: Record<Child["state"], string> = {
  queued: "waits to begin",
  running: "works",
  waiting: "asks",
  completed: "done",
  failed: "failed",
  cancelled: "cancelled",
  closed: "closed",
};

/** `alive`: the server runs, so that what it told of the agent holds still. */
export function childRow(child: Child, alive: boolean): Row {
  const cost = money(child.treeCost);
  const waiting = child.waiting ? `${child.waiting} waiting` : "";
  const interrupted = works(child) && !alive;
  const kind = !isOpen(child) ? "closed" : works(child) && alive ? "running" : "idle";
  const name = childName(child);
  const word = interrupted ? "interrupted" : CHILD_WORDS[child.state];
  return {
    label: name,
    description: [child.agent === name ? "" : child.agent, word, waiting, cost].filter(Boolean).join(" · "),
    icon: interrupted ? "debug-pause" : CHILD_ICONS[child.state],
    tooltip: [name, `${child.agent} with ${child.model}`, child.said].filter(Boolean).join("\n"),
    context: `agent.${kind}`,
  };
}

/** Whether an agent has something to do. */
export function works({ state }: Child): boolean {
  return state === "queued" || state === "running" || state === "waiting";
}

export function childName(child: Child): string {
  return child.name || child.agent;
}

/** Whether an agent still accepts messages. */
export function isOpen(child: Child): boolean {
  return child.state !== "closed";
}

/** The children below one session, in the order in which they came. */
export function childrenOf(children: Iterable<Child>, parent: string): Child[] {
  return [...children].filter((child) => child.parentSessionId === parent);
}

/** The root of a session's tree. */
export function rootOf(sessionId: string): string {
  return sessionId.split("/", 1)[0] ?? sessionId;
}

/** "$0.12", or "$0.12+" where the price of some requests is not known; "" for nothing. */
export function money(cost: Cost): string {
  const amount = cost.amount ?? 0;
  if (!amount && !cost.unpriced) return "";
  if (!amount) return "price unknown";
  return `$${amount < 0.1 ? amount.toFixed(3) : amount.toFixed(2)}${cost.unpriced ? "+" : ""}`;
}

/** How full the window of the model is, such as "34%"; "" where that is not known. */
export function fullness({ tokens, window }: Record<string, number>): string {
  return tokens && window ? `${Math.round((100 * tokens) / window)}%` : "";
}

/** The text of the status item, and what it says when the pointer is over it. */
export function statusOf(summary: Summary, children: Iterable<Child>): { text: string; tooltip: string } {
  const { session } = summary;
  const model = option(summary, "model") ?? "";
  const agent = option(summary, "agent") ?? session.agent;
  const [active, all] = counted(children);
  const icon = { running: "$(loading~spin)", requires_action: "$(bell-dot)" }[session.state] ?? "$(sparkle)";
  const cost = money(summary.treeCost);
  const agents = active ? `$(organization) ${active}` : "";
  const bypass = option(summary, "bypass") === "on" ? "$(unlock)" : "";
  const paid = summary.treeCost.amount ? cost : "";
  const text = [icon, short(model) || "Magy", paid, agents, bypass].filter(Boolean).join(" ");
  const lines = [
    `**${titleOf(session)}**`,
    `Agent ${agent}, model ${model || "not chosen"}`,
    [cost && `Cost: ${cost}`, fullness(summary.context) && `window ${fullness(summary.context)} full`]
      .filter(Boolean)
      .join(", "),
    all ? `${active} of ${all} agents below work` : "",
    bypass ? "Questions are answered by yes (bypass)" : "",
  ];
  return { text, tooltip: lines.filter(Boolean).join("\n\n") };
}

/** What inline completion took today; "" while it is off. */
export function suggestionsOf(status: CompletionStatus): string {
  if (!status.enabled) return "";
  if (status.paused) return `Suggestions pause: ${status.paused}`;
  const often = status.requests === 1 ? "1 request" : `${status.requests} requests`;
  const cost = money({ amount: status.cost });
  return `Suggestions today: ${often}${cost && `, ${cost}`}`;
}

function counted(children: Iterable<Child>): [number, number] {
  const all = [...children].filter((child) => child.state !== "closed");
  return [all.filter((child) => child.state === "running").length, all.length];
}

/** A model's own name, without that of its provider. */
function short(model: string): string {
  return model.slice(model.indexOf("/") + 1);
}

/** How long ago that was, as people say it. */
export function ago(then: number, now: number): string {
  const minutes = Math.floor((now - then) / 60_000);
  if (minutes < 1) return "now";
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h`;
  const days = Math.floor(minutes / (24 * 60));
  return days === 1 ? "1 day" : `${days} days`;
}
