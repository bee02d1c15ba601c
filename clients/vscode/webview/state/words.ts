/** What is said of blocks in a line: heads of calls, children, results. */

import type { Child } from "../../src/wire/generated";
import type { Block, Data } from "./blocks";
import { parentOf, textOf } from "./blocks";
import { oneLine } from "./harmless";
import { spentOf, words } from "./sums";
import type { Transcript } from "./transcript";

const LONGEST = 60;

export interface CallInput {
  agent?: string;
  task_name?: string;
  prompt?: string;
  job_id?: string;
  job_ids?: string[];
  until?: string;
  mode?: string;
  message?: string;
  [name: string]: unknown;
}

export function inputOf(data: Data): CallInput {
  return typeof data.input === "object" && data.input !== null ? (data.input as CallInput) : {};
}

export function clipped(text: unknown): string {
  const line = oneLine(typeof text === "string" ? text : "");
  return line.length > LONGEST ? `${line.slice(0, LONGEST - 1)}…` : line;
}

/** The mark of a call or a child in that state. */
export function markOf(state: string | undefined): string {
  switch (state) {
    case "completed":
      return "✓";
    case "failed":
      return "✗";
    case "cancelled":
      return "⊘";
    case "in_progress":
    case "running":
      return "▸";
    case "waiting":
      return "?";
    case "closed":
      return "▪";
    case "idle":
      return "○";
    default:
      return "·";
  }
}

export function duration(seconds: number | undefined): string {
  return seconds !== undefined && seconds >= 1 ? `${seconds.toFixed(1)} s` : "";
}

/** How a call ended, if not as it should. */
export function endedBadly(data: Data): string {
  return data.ended && data.ended !== "completed" ? data.ended : "";
}

/** The rule that decided about a call. */
export function ruleOf(data: Data): string {
  return data.decision?.rule ? `${data.decision.action}: ${data.decision.rule}` : "";
}

// --- child agents ---------------------------------------------------------------------------

/** The id of the child that a call of the session began. */
export function childOf(t: Transcript, block: Block): string {
  return `${t.session}/${block.id}`;
}

/** The id of a session as a model writes it, in full. */
function fullId(t: Transcript, id: unknown): string | undefined {
  if (typeof id !== "string" || id === "") return undefined;
  if (id === "parent") return parentOf(t.session);
  return id.includes("/") ? id : `${t.session}/${id}`;
}

export function childName(child: Child): string {
  return child.name ? `${child.agent} “${child.name}”` : child.agent;
}

function who(t: Transcript, id: unknown): string {
  const child = t.children.get(fullId(t, id) ?? "");
  if (child) return childName(child);
  return typeof id === "string" && id ? id : "an agent";
}

/** How a child is, and what it took. */
export function lifeOf(child: Child): { questions: string; rest: string } {
  const asked = child.questions ?? 0;
  const waiting = child.waiting ?? 0;
  const rest = [
    child.state as string,
    waiting > 0 ? `${waiting} wait` : "",
    ...words(spentOf(child.usage, child.cost)),
  ];
  return {
    questions: asked > 0 ? `${asked} question${asked === 1 ? "" : "s"}` : "",
    rest: rest.filter(Boolean).join(" · "),
  };
}

const CALLS: Readonly<Record<string, (t: Transcript, input: CallInput) => string>> = {
  wait_agent(t, input) {
    const ids = Array.isArray(input.job_ids) ? input.job_ids : [];
    if (ids.length === 0) return "wait for all";
    if (ids.length > 3) return `wait for ${ids.length} agents`;
    return `wait for ${ids.map((id) => who(t, id)).join(input.until === "any" ? " or " : ", ")}`;
  },
  send_agent_message: (t, input) => `tell ${who(t, input.job_id)}: ${clipped(input.message)}`,
  list_agents: () => "list",
  close_agent: (t, input) => `${input.mode === "cancel" ? "cancel" : "close"} ${who(t, input.job_id)}`,
  rate_agent(t, input) {
    const score = typeof input.score === "number" ? `${input.score}` : "?";
    return `rate ${who(t, input.job_id)} for ${clipped(input.capability)}: ${score}`;
  },
};

/** What a call about children wants, in a line; empty for other calls. */
export function agentCall(t: Transcript, data: Data): string {
  const said = data.name ? CALLS[data.name] : undefined;
  return said && (data.input || data.decision) ? said(t, inputOf(data)) : "";
}

export function isSpawn(data: Data): boolean {
  return data.name === "spawn_agent";
}

/** The session that a block is about, if it is one of an agent. */
export function sessionOf(t: Transcript, block: Block): string | undefined {
  if (block.kind === "mail") return block.data.mail?.sender;
  if (block.kind !== "tool") return undefined;
  if (isSpawn(block.data)) return begun(t, block) ? childOf(t, block) : undefined;
  if (!agentCall(t, block.data)) return undefined;
  const input = inputOf(block.data);
  return fullId(t, input.job_id ?? (input.job_ids?.length === 1 ? input.job_ids[0] : undefined));
}

/** Whether the child exists that a call is to spawn. */
export function begun(t: Transcript, block: Block): boolean {
  return block.data.status === "completed" || t.children.has(childOf(t, block));
}

const TERMS = ["model", "context", "permissions", "limits", "directory"];

/** What a call to spawn wants: its terms, and the task unless the head has it whole. */
export function wanted(input: CallInput): string {
  const terms = TERMS.filter((name) => !["", "none", undefined, null].includes(input[name] as string)).map((name) => {
    const value = input[name];
    return `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}\n`;
  });
  const task = input.prompt ?? "";
  const inHead = !input.task_name && task === clipped(task);
  return terms.join("") + (inHead ? "" : task);
}

/** The task of a call to spawn, in short. */
export function taskOf(input: CallInput): string {
  return clipped(input.task_name || input.prompt);
}

/**
 * Whether a block is the result of a task that a graph took, and whose graph shows the task: it leads to the transcript
 * with that result. What no graph took, say after a cancel, is for the reader.
 */
export function isInGraph(t: Transcript, block: Block): boolean {
  const { mail, report, queue } = block.data;
  if (!mail || !report || queue !== "dropped") return false;
  const [, parent, call] = /^(.*)\/([^/]+)\.[\w-]+\.\d+$/.exec(mail.sender) ?? [];
  return parent === t.session && call !== undefined && t.get(call)?.data.graph !== undefined;
}

/** Who sent a message. */
export function senderOf(data: Data): string {
  const mail = data.mail;
  return mail ? `${mail.agent}${mail.name ? ` “${mail.name}”` : ""}` : "";
}

/** How the turn of a child ended that sent a result. */
export function reportOf(data: Data): string {
  const report = data.report;
  if (!report) return "";
  const took = report.seconds >= 1 ? `${Math.round(report.seconds)} s` : "";
  const unread = data.queue === "waiting" ? "not read yet" : "";
  return [report.status, ...words(spentOf(report.usage, report.cost)), took, unread].filter(Boolean).join(" · ");
}

/** The words of a prompt, without what went along with it. */
export function promptWords(block: Block): string {
  return (block.data.content ?? []).filter((one) => one.type === "text").map(contentText).join("\n");
}

/** A content block of a prompt as text. */
export function contentText(block: NonNullable<Data["content"]>[number]): string {
  switch (block.type) {
    case "text":
      return (block.text ?? "").trimEnd();
    case "image":
      return `[image: ${block.name ?? "picture"}]`;
    case "resource_link":
      return isPicture(block) ? `[image: ${block.name ?? "picture"}]` : `[${block.name ?? block.uri ?? ""}]`;
    case "resource": {
      const uri = block.resource?.uri ?? "";
      return `[${uri.slice(uri.lastIndexOf("/") + 1)}]`;
    }
    default:
      return textOf(block);
  }
}

export function isPicture(block: { mimeType?: string | null }): boolean {
  return (block.mimeType ?? "").startsWith("image/");
}
