/** Applies what the server says of a session to its transcript. */

import type {
  AnyUpdate,
  ChangedOption,
  Child,
  ConfigOption,
  EventsResult,
  MailUpdate,
  Notice,
  PlanUpdate,
  Queue,
  SubscribeResult,
  ToolCallUpdate,
  UsageUpdate,
} from "../../src/wire/generated";
import type { Block, Content, Kind, Part } from "./blocks";
import { textOf } from "./blocks";
import { interaction, summaryOf } from "./questions";
import { restored } from "./restored";
import { add, join, nothing, spentOf } from "./sums";
import type { Transcript } from "./transcript";

interface Stamped {
  seq?: number | null;
  at?: number | null;
}

/** Characters that are kept of a running tool's output. */
const TAIL = 2000;

const ENDS: Readonly<Record<string, string>> = {
  refusal: "The model refused",
  max_tokens: "The reply became too long",
  max_requests: "Too many requests",
  max_turn_tokens: "Too many tokens",
  max_cost: "Too expensive",
  max_run: "The whole run is at its cap",
  max_time: "Out of time",
  loop: "A loop",
  stray_call: "A tool call came as text",
};

/** The answer of `magy/session/subscribe`; `again`: it adds to what is shown. */
export function attached(t: Transcript, session: string, result: SubscribeResult, again: boolean): void {
  t.session = session;
  if (again) t.dropStreamed();
  page(t, result);
  const { summary, events } = result;
  const last = result.more ? (events[events.length - 1]?.seq ?? 0) : result.headSeq;
  t.seq = Math.max(last, t.seq);
  t.waiting = [...(summary.waiting ?? [])];
  t.title = summary.session.title ?? null;
  t.state = summary.session.state ?? "idle";
  t.counted = result.headSeq;
  t.spent = spentOf(summary.usage, summary.cost);
  const context = (summary.context ?? {}) as { tokens?: number; window?: number };
  t.context = context.tokens ?? 0;
  t.window = context.window ?? 0;
  options(t, summary.configOptions);
  if (!again) t.floor = result.floorSeq;
  summaryOf(t, summary.interactions ?? []);
  t.frame();
}

/** The options that a session begins with, while there is none. */
export function begins(t: Transcript, offered: readonly ConfigOption[]): void {
  options(t, offered);
  t.frame();
}

function page(t: Transcript, result: Pick<EventsResult, "events">): void {
  t.paging = true;
  try {
    for (const event of result.events) apply(t, event.update, event.seq, event.at);
  } finally {
    t.paging = false;
  }
}

/** The answer of `magy/session/events`: a page before all that is shown. */
export function older(t: Transcript, result: Pick<EventsResult, "events">): void {
  t.floor = result.events[0]?.seq ?? 1;
  t.inFront(() => {
    for (const event of result.events) apply(t, event.update, event.seq, event.at);
  });
  for (const [seq, news] of [...t.restores].sort(([a], [b]) => a - b)) restored(t, news, seq);
  t.frame();
}

/** One update as it comes live. One that cannot be understood changes nothing. */
export function update(t: Transcript, news: AnyUpdate): void {
  const stamp = (news._meta as { magy?: Stamped } | null | undefined)?.magy;
  const seq = stamp?.seq ?? 0;
  apply(t, news, seq, stamp?.at ?? 0);
  if (seq) t.seq = Math.max(seq, t.seq);
}

/** How a child of the tree is now. */
export function childChanged(t: Transcript, child: Child): void {
  const known = t.children.get(child.sessionId);
  if (known && known.updatedAt > child.updatedAt) return;
  t.children.set(child.sessionId, child);
  t.frame();
  const call = child.sessionId.slice(child.sessionId.lastIndexOf("/") + 1);
  if (child.parentSessionId === t.session) {
    const block = t.get(call);
    if (block?.kind === "tool") t.touch(block);
  }
  t.back((block) => {
    if (block.kind === "tool" && block.data.name?.includes("agent")) t.touch(block);
    return block.kind === "user";
  });
}

/** Entry `seq` of the log, or a delta if that is 0. Kinds that are not known are left out. */
function apply(t: Transcript, news: AnyUpdate, seq: number, at: number): void {
  try {
    show(t, news, seq, at);
  } catch (error) {
    console.error("Magy: an update could not be shown", news, error);
  }
}

function show(t: Transcript, news: AnyUpdate, seq: number, at: number): void {
  if (!t.older && t.progress !== "") {
    t.progress = "";
    t.frame();
  }
  switch (news.sessionUpdate) {
    case "user_message":
      t.merge(t.ensure("user", news.messageId, seq), { content: news.content });
      break;
    case "agent_message_chunk":
      return stream(t, "agent", news.messageId, textOf(news.content));
    case "agent_message":
      return message(t, "agent", news.messageId, textOf(news.content), seq);
    case "agent_thought_chunk":
      return stream(t, "thought", news.messageId, textOf(news.content));
    case "agent_thought":
      return message(t, "thought", news.messageId, textOf(news.content), seq);
    case "tool_call_update":
      return toolCall(t, news, seq);
    case "tool_call_content_chunk":
      return output(t, news.toolCallId, textOf(news.content));
    case "plan_update":
      return plan(t, news, seq);
    case "_magy_restored":
      return restored(t, news, seq);
    case "notice":
      return notice(t, news, seq);
    case "_magy_mail":
      return mail(t, news, seq);
    case "_magy_queue":
      return queue(t, news, seq);
    case "_magy_interaction":
      return interaction(t, news, seq);
    case "usage_update":
      return usage(t, news, seq, at);
    case "state_update":
      return state(t, news, seq, at);
    default:
      if (!t.older) frame(t, news, seq);
  }
}

/** What is about now, and not about then. */
function frame(t: Transcript, news: AnyUpdate, seq: number): void {
  switch (news.sessionUpdate) {
    case "session_info_update":
      if (news.title) t.title = news.title;
      break;
    case "config_option_update": {
      const window = (news._meta?.magy)?.window;
      if (typeof window === "number") t.window = window;
      options(t, news.configOptions);
      break;
    }
    case "_magy_progress":
      t.progress = news.text;
      break;
    case "_magy_closed":
      t.closed = true;
      t.merge(t.ensure("notice", `closed ${seq}`, seq), {
        severity: "info", title: "Closed", description: news.reason,
      });
      break;
    default:
      return; // a kind that is not known
  }
  t.frame();
}

function stream(t: Transcript, kind: Kind, id: string, text: string): void {
  const block = t.ensure(kind, id, 0);
  if (block.data.whole) return;
  block.data.text = (block.data.text ?? "") + text;
  t.touch(block);
}

/** Without any text, a reply begins anew, and what was streamed of it is void. */
function message(t: Transcript, kind: Kind, id: string, text: string, seq: number): void {
  if (text === "") return t.remove(id);
  const block = t.ensure(kind, id, seq);
  const known = block.data.whole;
  block.data.text = text.trimEnd();
  block.data.whole = true;
  if (!known || !t.older) t.touch(block);
}

/** Has the results drawn anew of which a graph that came, or is void, shows the tasks. */
function touchResults(t: Transcript, call: Block): void {
  t.back((block) => {
    if (block.kind === "mail") t.touch(block);
    return block === call;
  });
}

function toolCall(t: Transcript, news: ToolCallUpdate, seq: number): void {
  const block = t.ensure("tool", news.toolCallId, seq);
  const had = block.data.graph !== undefined;
  const about = news._meta?.magy;
  const parts = news.content ?? undefined;
  t.merge(block, {
    title: news.title ?? undefined,
    status: news.status ?? undefined,
    name: news.name ?? undefined,
    input: news.rawInput ?? undefined,
    parts,
    // What comes of the call takes its place; a diff then says what did happen.
    code: about?.decision ? parts?.filter((part: Part) => part.type === "content") : undefined,
    locations: news.locations ?? undefined,
    sort: news.kind ?? undefined,
    decision: about?.decision ?? undefined,
    graph: about?.graph ?? undefined,
    deliberation: about?.deliberation ?? undefined,
    ended: about?.status ?? undefined,
    duration: about?.duration ?? undefined,
  });
  if (["completed", "failed", "cancelled"].includes(news.status ?? "")) {
    delete block.data.tail;
    // What streamed of it is not how it ended.
    if (!about?.graph) delete block.data.graph;
    if (!about?.deliberation) delete block.data.deliberation;
  }
  if (had !== (block.data.graph !== undefined)) touchResults(t, block);
}

function output(t: Transcript, id: string, text: string): void {
  const block = t.ensure("tool", id, 0);
  let tail = (block.data.tail ?? "") + text.slice(-2 * TAIL);
  if (tail.length > TAIL) {
    tail = tail.slice(-TAIL);
    const line = tail.search(/\n[^\n]/);
    if (line >= 0) tail = tail.slice(line + 1);
  }
  t.merge(block, { tail });
}

/** Each turn shows its own plan. */
function plan(t: Transcript, news: PlanUpdate, seq: number): void {
  const { entries } = news.plan;
  let turn = "";
  t.backHere((block) => {
    if (!["user", "mail"].includes(block.kind) || ["waiting", "dropped"].includes(block.data.queue ?? "")) return false;
    turn = block.id;
    return true;
  });
  t.merge(t.ensure("plan", `plan ${turn}`, seq), { entries });
}

function notice(t: Transcript, news: Notice, seq: number): void {
  if (news.title === "Restored") return; // `_magy_restored` said so
  if (news.title === "Resumed" && !t.older) t.dropStreamed();
  const id = seq ? `notice ${seq} ${news.title}` : `notice now ${news.title}`;
  const block = t.ensure("notice", id, seq);
  t.merge(block, {
    severity: news.severity, title: news.title, description: news.description,
  });
}

function mail(t: Transcript, news: MailUpdate, seq: number): void {
  if (news.mail.payload === "signal") return;
  t.merge(t.ensure("mail", news.mail.id, seq), {
    mail: news.mail,
    content: (news.content as Content[] | null | undefined) ?? undefined,
    report: (news.report as Block["data"]["report"] | null) ?? undefined,
  });
}

function mark(t: Transcript, ids: readonly string[], how: Block["data"]["queue"], seq: number): void {
  for (const id of ids) {
    const block = t.get(id);
    if (!block) continue;
    if (seq && block.last) block.last = Math.max(seq, block.last);
    t.merge(block, { queue: how });
  }
}

/** Which prompts wait, were admitted or dropped. */
function queue(t: Transcript, news: Queue, seq: number): void {
  if (!t.paging) queueNow(t, news);
  const id = news.added;
  if (id && !t.get(id)?.data.queue) {
    mark(t, [id], t.early.get(id) ?? "waiting", seq);
    t.early.delete(id);
  }
  const admitted = news.admitted ?? [];
  mark(t, admitted, "admitted", seq);
  for (const one of admitted) {
    if (t.get(one)) t.moveToEnd(one);
    else t.early.set(one, "admitted");
  }
  const dropped = news.dropped ?? [];
  mark(t, dropped, "dropped", seq);
  for (const one of dropped) if (!t.get(one)) t.early.set(one, "dropped");
}

function queueNow(t: Transcript, news: Queue): void {
  const gone = new Set([...(news.admitted ?? []), ...(news.dropped ?? [])]);
  const id = news.added;
  let waiting = t.waiting;
  if (id && !waiting.some((one) => one.messageId === id)) {
    const block = t.get(id);
    if (block?.data.queue !== "admitted") {
      const agent = block?.data.mail?.agent;
      const text = (agent ? `${agent}: ` : "") + textOf(block?.data.content);
      waiting = [...waiting, { messageId: id, delivery: news.delivery ?? "steer", text }];
    }
  }
  waiting = waiting.filter((one) => !gone.has(one.messageId));
  const order = news.order ?? [];
  if (order.length) {
    const place = new Map(order.map((one, at) => [one, at]));
    const rank = (one: { messageId: string }) => place.get(one.messageId) ?? order.length;
    waiting = [...waiting].sort((a, b) => rank(a) - rank(b));
  }
  t.waiting = waiting;
  t.frame();
}

function usage(t: Transcript, news: UsageUpdate, seq: number, at: number): void {
  const about = news._meta?.magy;
  if (!about) return;
  const took = about.usage;
  if (seq) {
    const turn = t.turn ? turnOf(t, t.turn) : t.nameless;
    add(turn, took, about.cost);
    if (at) turn.to = at;
    t.frame();
  }
  if (t.older || seq <= t.counted) return;
  t.counted = seq;
  add(t.spent, took, about.cost);
  // The request of a reply is a number; titles and summaries are asked for aside.
  if (/^[0-9]+$/.test(about.request) && (took.totalTokens ?? 0) > 0) t.context = took.totalTokens ?? 0;
}

function turnOf(t: Transcript, id: string): ReturnType<typeof nothing> {
  let spent = t.turns.get(id);
  if (!spent) t.turns.set(id, (spent = nothing()));
  return spent;
}

function state(t: Transcript, news: Extract<AnyUpdate, { sessionUpdate: "state_update" }>, seq: number, at: number): void {
  const about = news._meta?.magy;
  const turn = about?.turnId ?? "";
  if (turn) named(t, turn, about?.opens === true, news.state === "idle", at);
  if (t.older) return void ended(t, news, seq);
  if (t.state !== news.state) t.state = news.state;
  t.frame();
  if (news.state === "idle") stopStreamed(t);
  ended(t, news, seq);
}

/** Entries belong to the turn `id` now; the last one, if it is over. */
function named(t: Transcript, id: string, opens: boolean, over: boolean, at: number): void {
  const spent = turnOf(t, id);
  if (opens && at) spent.from = at;
  if (over && at) spent.to = at;
  join(spent, t.nameless);
  t.nameless = nothing();
  t.turn = over ? "" : id;
  t.frame();
}

/** Says why a turn ended, if not as it should. */
function ended(t: Transcript, news: Extract<AnyUpdate, { sessionUpdate: "state_update" }>, seq: number): void {
  const stop = news._meta?.magy?.stop;
  const why = news._meta?.magy?.message ?? "";
  if (news.state !== "idle" || !stop || stop === "end_turn") return;
  if (stop === "cancelled" && why === "") return;
  t.merge(t.ensure("notice", `end ${seq}`, seq), {
    severity: stop === "error" ? "error" : "info",
    title: ENDS[stop] ?? capitalized(stop.replaceAll("_", " ")),
    description: why,
  });
}

function capitalized(text: string): string {
  return text.replace(/(^|\s)([a-z])/g, (all) => all.toUpperCase());
}

/** Shows calls of this turn as stopped that never became part of the log. */
function stopStreamed(t: Transcript): void {
  t.back((block) => {
    if (block.streamed && block.kind === "tool") t.merge(block, { status: "cancelled" });
    return block.kind === "user";
  });
}

/** What may be chosen stays as it was where an option does not say it. */
function options(t: Transcript, changed: readonly (ChangedOption & { options?: string[] })[]): void {
  for (const option of changed) {
    t.options.set(option.configId, option.currentValue);
    if (option.options) t.choices.set(option.configId, option.options);
  }
}
