/** What a transcript is made of: blocks in an order, each of a kind. */

import type {
  ChildReport,
  Deliberation,
  Diff,
  Graph,
  Interaction,
  Judgement,
  Mail,
  Output,
  Place,
  PlanEntry,
} from "../../src/wire/generated";

export type Kind = "user" | "agent" | "thought" | "tool" | "plan" | "notice" | "mail" | "question";

/** A content block of a prompt or a message, as far as it is shown. */
export interface Content {
  type: string;
  text?: string;
  uri?: string | null;
  name?: string;
  mimeType?: string | null;
  resource?: { uri: string; text: string };
}

export type Part = Output | Diff;

/** An open question. That of the session shown may lack what says who asks. */
export type Question = Partial<Interaction> & Pick<Interaction, "interactionId" | "sessionId" | "title" | "rule">;

/** What is known of a block; which fields there are depends on its kind. */
export interface Data {
  content?: Content[];
  /** Of answers and thinking: what was said, streamed or whole. */
  text?: string;
  whole?: boolean;
  queue?: "waiting" | "admitted" | "dropped";
  title?: string;
  description?: string;
  severity?: string;
  name?: string;
  status?: string;
  input?: unknown;
  parts?: Part[];
  code?: Part[];
  tail?: string;
  locations?: Place[];
  /** The protocol's word for what a call does: read, edit, execute. */
  sort?: string;
  decision?: Judgement;
  /** The graph of tasks that a call runs. */
  graph?: Graph;
  /** The deliberation that a call is. */
  deliberation?: Deliberation;
  ended?: string;
  duration?: number;
  entries?: PlanEntry[];
  mail?: Mail;
  report?: ChildReport;
  question?: Question;
  outcome?: string;
  scope?: string;
  reason?: string;
  redone?: boolean;
  /** The restore that took the block out of the conversation. */
  undone?: string;
}

export interface Block {
  readonly kind: Kind;
  readonly id: string;
  data: Data;
  /** First and last entry of the log about it; 0 while it is not in the log. */
  seq: number;
  last: number;
  /** Only deltas so far: not in the log yet. */
  streamed: boolean;
  /** Which page of older entries made it; 0: the live end. */
  readonly page: number;
}

export type Usage = Record<string, number>;

/** What requests took; `unpriced` counts those whose price is not known. */
export interface Spent {
  usage: Usage;
  amount: number;
  unpriced: number;
  /** Seconds since 1970 of the first and last entry about it. */
  from?: number;
  to?: number;
}

/** The text of one content block, or of several. */
export function textOf(content: unknown): string {
  if (Array.isArray(content)) return content.map(textOf).join("");
  if (typeof content !== "object" || content === null) return "";
  const block = content as { text?: unknown; content?: { text?: unknown } };
  if (typeof block.text === "string") return block.text;
  return typeof block.content?.text === "string" ? block.content.text : "";
}

/** The id of the session above, or undefined for a root. */
export function parentOf(session: string): string | undefined {
  const at = session.lastIndexOf("/");
  return at > 0 ? session.slice(0, at) : undefined;
}

/** Whether a session is another one, or below it. */
export function below(session: string, other: string): boolean {
  return session === other || session.startsWith(`${other}/`);
}
