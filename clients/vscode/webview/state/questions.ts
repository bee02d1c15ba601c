/** Questions to the person: which are open, and how others were answered. */

import type { Interaction, InteractionChanged, InteractionUpdate } from "../../src/wire/generated";
import { below, parentOf } from "./blocks";
import type { Block, Question } from "./blocks";
import type { Transcript } from "./transcript";

interface Resolved {
  outcome: string;
  scope?: string;
  reason?: string;
}

/** What the session itself says of a question. */
export function interaction(t: Transcript, news: InteractionUpdate, seq: number): void {
  if (news.open) {
    const question = { ...(news.open as unknown as Question), sessionId: t.session };
    if (t.paging) {
      // Whether it is open still, the summary says.
      t.merge(t.ensure("question", question.interactionId, seq), { question });
    } else opened(t, question);
  } else if (news.resolved) resolved(t, news.resolved.interactionId, news.resolved);
}

/** Questions of any session of the workspace were opened or resolved. */
export function changed(t: Transcript, news: Pick<InteractionChanged, "opened" | "resolved">): void {
  for (const question of news.opened ?? []) {
    if (below(question.sessionId, t.session)) opened(t, question);
  }
  for (const id of news.resolved ?? []) {
    if (t.get(id)?.kind === "question") resolved(t, id, undefined);
  }
}

/** Makes `open` the open questions of the session and of those below it. */
export function summaryOf(t: Transcript, open: readonly Interaction[]): void {
  const ids = new Set(open.map((one) => one.interactionId));
  for (const id of [...t.open.keys()]) if (!ids.has(id)) resolved(t, id, undefined);
  changed(t, { opened: [...open], resolved: [] });
}

function opened(t: Transcript, question: Question): void {
  const id = question.interactionId;
  const block = t.get(id);
  if (block?.data.outcome) return;
  const known = t.open.get(id);
  // The one that comes second may say who asks.
  const whole = known?.path?.length ? { ...question, ...known } : { ...known, ...question };
  t.open.set(id, whole);
  const made = t.make("question", id);
  made.data.question = whole;
  t.touch(made);
  touchCall(t, whole);
  t.frame();
}

/** The call that a question is about is drawn otherwise while it is open. */
function touchCall(t: Transcript, question: Question | undefined): void {
  const call = question?.sessionId === t.session && question.toolCallId ? t.get(question.toolCallId) : undefined;
  if (call) t.touch(call);
}

/** Whether a question about this call is open: its card shows what would run or change. */
export function isAsked(t: Transcript, call: Block): boolean {
  for (const one of t.open.values()) if (one.sessionId === t.session && one.toolCallId === call.id) return true;
  return false;
}

function resolved(t: Transcript, id: string, how: Resolved | undefined): void {
  touchCall(t, t.open.get(id));
  t.open.delete(id);
  t.frame();
  const block = t.get(id);
  if (!block) return;
  t.merge(block, {
    outcome: how?.outcome ?? block.data.outcome ?? "withdrawn or answered elsewhere",
    scope: how?.scope,
    reason: how?.reason,
  });
  if (how) block.data.outcome = how.outcome;
}

/** This client answered: the words are known before the server's come. */
export function answered(t: Transcript, id: string, outcome: string, scope: string, reason: string): void {
  resolved(t, id, { outcome: outcome === "allow" ? "allowed" : "refused", scope, reason });
}

/** Whether an answer holds for other agents, too. */
export function spawns(question: Question): boolean {
  return (question.remember ?? []).some((grant) => (grant as { key?: string }).key === "agent");
}

export interface Choice {
  label: string;
  outcome: "allow" | "refuse";
  scope: "once" | "session" | "project";
}

/** The answers; the first refuses. What cannot be said narrowly is not remembered. */
export function choices(question: Question): Choice[] {
  const form = question.form && (question.form.fields.length ? "Fill it in…" : "Agree");
  const once = form ?? (spawns(question) ? "Allow until your next prompt" : "Allow once");
  const list: Choice[] = [
    { label: "Refuse", outcome: "refuse", scope: "once" },
    { label: once, outcome: "allow", scope: "once" },
  ];
  if (question.remember?.length) {
    list.push(
      { label: "Allow for this session", outcome: "allow", scope: "session" },
      { label: "Allow for this project", outcome: "allow", scope: "project" },
    );
  }
  return list;
}

/** Which agent asks, and whose child it is; empty if the session shown asks itself. */
export function asker(t: Transcript, question: Question): string {
  const path = question.path ?? [];
  const step = (one: { sessionId: string; agent: string; name: string }) =>
    one.name && parentOf(one.sessionId) ? `${one.agent} “${one.name}”` : one.agent;
  if (path.length > 1) return [...path].reverse().map(step).join(", a child of ");
  return question.agent || t.options.get("agent") || "";
}

/** What an answer may allow besides: also the agents of the same reply, by name. */
export function covers(t: Transcript, question: Question): string[] {
  return [...(question.covers ?? []), ...others(t, question)];
}

function others(t: Transcript, question: Question): string[] {
  const asked = question.toolCallId ? t.get(question.toolCallId) : undefined;
  if (!asked || !spawns(question) || question.sessionId !== t.session) return [];
  const reply = `${asked.id.split(".")[0]}.`;
  const found: string[] = [];
  t.back((block) => {
    const { name, status, input } = block.data;
    if (block === asked) return true;
    if (block.kind === "tool" && block.id.startsWith(reply) && name === asked.data.name && status === "pending") {
      const args = (input ?? {}) as { agent?: string; task_name?: string; prompt?: string };
      const task = (args.task_name || args.prompt || "").split("\n")[0] ?? "";
      found.unshift(`${args.agent ?? "an agent"}: ${task.length > 60 ? `${task.slice(0, 59)}…` : task}`);
    }
    return false;
  });
  return found;
}
