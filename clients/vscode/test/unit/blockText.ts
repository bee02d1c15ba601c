/** A block as text, in the words of the Emacs client: what of a recorded session both show. */

import type { Block, Data } from "../../webview/state/blocks";
import { harmless } from "../../webview/state/harmless";
import { asker, covers } from "../../webview/state/questions";
import { answer, body, extent, noticeHead, partText, planHead, planMark, spawnBody } from "../../webview/state/text";
import type { Transcript } from "../../webview/state/transcript";
import {
  agentCall, childOf, contentText, duration, endedBadly, inputOf, isInGraph, isSpawn, lifeOf, markOf, reportOf, ruleOf, senderOf, taskOf,
} from "../../webview/state/words";

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
      return mail(t, block);
    case "question":
      return question(t, data);
  }
}

function prompt(data: Data, text: string): string {
  if (data.queue === "waiting") return "";
  return text + (data.queue === "dropped" ? "  (dropped)" : "") + (data.undone ? "  (undone)" : "");
}

function plan(data: Data): string {
  return [planHead(data), ...(data.entries ?? []).map((one) => `${planMark(one.status)} ${one.content}`)].join("\n");
}

function notice(data: Data): string {
  return noticeHead(data) + (data.description ? `: ${data.description}` : "");
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

function mail(t: Transcript, block: Block): string {
  if (isInGraph(t, block)) return "";
  const { data } = block;
  const text = (data.content ?? []).map(contentText).join("\n");
  if (data.report) {
    const head = joined(`result ${markOf(data.report.status)} ${data.mail?.agent ?? ""}`, data.mail?.name ?? "", reportOf(data));
    return `${head}\n${text}`;
  }
  if (!data.content) return `data from ${senderOf(data)}, for no model to read`;
  return data.queue === "waiting" ? "" : `${senderOf(data)} ❯ ${prompt(data, text)}`;
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
