/** A block as text: what copying it yields, and what reading it aloud says. */

import type { Block, Data, Part } from "./blocks";
import { harmless } from "./harmless";
import { asker, covers, spawns } from "./questions";
import type { Transcript } from "./transcript";
import {
  agentCall, begun, childOf, contentText, duration, endedBadly, inputOf, isSpawn, lifeOf, markOf, reportOf, ruleOf,
  senderOf, taskOf, wanted,
} from "./words";

/** All that a block says, unfolded. Empty for what is not shown among the blocks. */
export function blockText(t: Transcript, block: Block): string {
  return harmless(raw(t, block)).trimEnd();
}

function raw(t: Transcript, block: Block): string {
  const { data } = block;
  switch (block.kind) {
    case "user":
      return prompt(data, (data.content ?? []).map(contentText).join("\n"));
    case "agent":
      return data.text ?? "";
    case "thought":
      return `Thinking\n${data.text ?? ""}`;
    case "tool":
      return tool(t, block);
    case "plan":
      return plan(data);
    case "notice":
      return notice(data);
    case "mail":
      return mail(data);
    case "question":
      return question(t, data);
  }
}

function prompt(data: Data, text: string): string {
  if (data.queue === "waiting") return "";
  return text + (data.queue === "dropped" ? "  (dropped)" : "") + (data.undone ? "  (undone)" : "");
}

export function planHead(data: Data): string {
  const entries = data.entries ?? [];
  return `Plan ${entries.filter((one) => one.status === "completed").length}/${entries.length}`;
}

export function planMark(status: string): string {
  return status === "cancelled" ? "✗" : markOf(status);
}

function plan(data: Data): string {
  return [planHead(data), ...(data.entries ?? []).map((one) => `${planMark(one.status)} ${one.content}`)].join("\n");
}

export function noticeHead(data: Data): string {
  const title = data.title ?? "";
  if (data.severity !== "error") return title;
  return title.toLowerCase() === "error" ? "error" : `error: ${title}`;
}

function notice(data: Data): string {
  return noticeHead(data) + (data.description ? `: ${data.description}` : "");
}

// --- tool calls -----------------------------------------------------------------------------

export function partText(part: Part): string {
  if (part.type === "diff") return part.patch.text;
  if (part.type === "content") return `${part.content.text.trimEnd()}\n`;
  return "";
}

/** What a call runs, as parts, unless its content says so still. */
export function codeOf(data: Data): Part[] {
  const code = data.code ?? [];
  return JSON.stringify(code) === JSON.stringify(data.parts ?? []) ? [] : code;
}

function body(data: Data): string {
  const code = codeOf(data);
  return [...code.map(partText), code.length ? "\n" : "", ...(data.parts ?? []).map(partText), data.tail ?? ""].join("");
}

function joined(...parts: string[]): string {
  return parts.filter(Boolean).join("  ");
}

function tool(t: Transcript, block: Block): string {
  const { data } = block;
  if (isSpawn(data)) return spawn(t, block);
  const said = agentCall(t, data);
  if (said) {
    return `${joined(`agent ${markOf(data.status)} ${said}`, endedBadly(data), duration(data.duration))}\n${body(data)}`;
  }
  const head = `tool ${markOf(data.status)} ${data.title ?? "…"}`;
  return `${joined(head, endedBadly(data), duration(data.duration), ruleOf(data))}\n${body(data)}`;
}

function spawn(t: Transcript, block: Block): string {
  const { data } = block;
  const input = inputOf(data);
  const child = t.children.get(childOf(t, block));
  const life = child ? lifeOf(child) : undefined;
  const refused = !child && ["failed", "cancelled"].includes(data.status ?? "") ? (data.ended ?? "") : "";
  const mark = markOf(child ? child.state : data.status);
  const head = joined(
    `agent ${mark} ${child?.agent ?? input.agent ?? "agent"}`, taskOf(input), life?.questions ?? "", life?.rest ?? "", refused,
  );
  return `${head}\n${spawnBody(t, block)}`;
}

/** The task of a child while nothing came of the call, or else what did. */
export function spawnBody(t: Transcript, block: Block): string {
  const { data } = block;
  return begun(t, block) || !data.parts?.length ? wanted(inputOf(data)) : body(data);
}

// --- mail and questions -----------------------------------------------------------------------

function mail(data: Data): string {
  const text = (data.content ?? []).map(contentText).join("\n");
  if (data.report) {
    const head = joined(`result ${markOf(data.report.status)} ${data.mail?.agent ?? ""}`, data.mail?.name ?? "", reportOf(data));
    return `${head}\n${text}`;
  }
  if (!data.content) return `data from ${senderOf(data)}, for no model to read`;
  return data.queue === "waiting" ? "" : `${senderOf(data)} ❯ ${prompt(data, text)}`;
}

/** How a question was answered. */
export function answer(data: Data): string {
  const lasts = data.scope === "session" || data.scope === "project" ? ` for the ${data.scope}` : "";
  return `${data.outcome ?? ""}${lasts}${data.reason ? `: ${data.reason}` : ""}`;
}

export function extent(data: Data): string {
  const one = data.question;
  if (!one?.remember?.length) return "No lasting yes: Magy cannot tell what it would allow";
  return spawns(one) ? "Any yes would allow" : "A lasting yes would allow";
}

function question(t: Transcript, data: Data): string {
  const title = data.question?.title ?? "A question";
  if (data.outcome || !data.question) return `? ${joined(title, answer(data))}`;
  const by = asker(t, data.question);
  return [
    `? ${title}${by ? `  (asked by ${by})` : ""}`,
    ...(data.question.content ?? []).map((part) => partText(part)),
    `asked because: ${data.question.rule}`,
    `${extent(data)}: ${covers(t, data.question).join(", ")}`,
  ].join("\n");
}
