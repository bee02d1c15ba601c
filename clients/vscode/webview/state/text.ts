/** Words about blocks: their heads, and what is in them. */

import type { Block, Data, Part } from "./blocks";
import type { Graph } from "../../src/wire/generated";
import { spawns } from "./questions";
import type { Transcript } from "./transcript";
import { begun, inputOf, markOf, wanted } from "./words";

export function planHead(data: Data): string {
  const entries = data.entries ?? [];
  return `Plan ${entries.filter((one) => one.status === "completed").length}/${entries.length}`;
}

export function planMark(status: string): string {
  return status === "cancelled" ? "✗" : markOf(status);
}

export function noticeHead(data: Data): string {
  const title = data.title ?? "";
  if (data.severity !== "error") return title;
  return title.toLowerCase() === "error" ? "error" : `error: ${title}`;
}

/** What a part of a call says. */
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

/** How a graph of tasks is, a line for each; those that need others stand further in. */
export function graphLines(graph: Graph): string[] {
  return [...graph.tasks.map((task) => `${"  ".repeat(Math.min(task.depth, 8))}${task.line}`), ...graphMore(graph)];
}

/** How many tasks of a graph are not shown, if there are any. */
export function graphMore(graph: Graph): string[] {
  const more = Object.values(graph.counts).reduce((sum, count) => sum + count, 0) - graph.tasks.length;
  return more > 0 ? [`(${more} more)`] : [];
}

/** What a call says besides how its graph is: at its end the first part says that, for other clients. */
export function graphRest(data: Data): Part[] {
  return data.ended ? (data.parts ?? []).slice(1) : [];
}

/** All that a call ran and gave. A deliberation is drawn: what its content says, the agent repeats. */
export function body(data: Data): string {
  if (data.deliberation) return data.deliberation.box.join("\n");
  if (data.graph) return [...graphLines(data.graph).map((line) => `${line}\n`), ...graphRest(data).map(partText)].join("");
  const code = codeOf(data);
  return [...code.map(partText), code.length ? "\n" : "", ...(data.parts ?? []).map(partText), data.tail ?? ""].join("");
}

/** The task of a child while nothing came of the call, or else what did. */
export function spawnBody(t: Transcript, block: Block): string {
  const { data } = block;
  return begun(t, block) || !data.parts?.length ? wanted(inputOf(data)) : body(data);
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
