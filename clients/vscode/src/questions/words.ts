import type { Answer } from "../magy";
import type { Form, Interaction } from "../wire/generated";

/** An answer that can be chosen; without `answer`, `does` says what is done instead. */
export interface Choice {
  label: string;
  detail?: string;
  answer?: Answer;
  does: "leave" | "look" | "answer" | "reason" | "confirm";
}

/** Characters of what an answer covers that fit into one line. */
const LINE = 90;

const REASON: Choice = { label: "$(x) Refuse, and say why…", answer: { outcome: "refuse" }, does: "reason" };

/** What a yes to a form of an MCP server means. */
export function yesTo(form: Form): string {
  return form.fields.length ? "Fill it in…" : "Agree";
}

/** The answers to a question. The first never allows. */
export function choices(question: Interaction): Choice[] {
  const covers = question.covers.join(", ");
  const until = question.remember.some((one) => one.key === "agent");
  const all: Choice[] = [
    question.content.length
      ? { label: "$(eye) Look at all of it first", does: "look" }
      : { label: "$(dash) Leave it open", does: "leave" },
    { label: "$(x) Refuse", answer: { outcome: "refuse" }, does: "answer" },
    ...(question.form ? [] : [REASON]),
    {
      label: question.form ? `$(edit) ${yesTo(question.form)}` : until ? "$(check) Allow until your next prompt" : "$(check) Allow once",
      answer: { outcome: "allow", scope: "once" },
      does: "answer",
    },
  ];
  if (!question.covers.length) return all;
  const does = covers.length > LINE || question.covers.length > 3 ? "confirm" : "answer";
  const detail = does === "confirm" ? `${question.covers.length} rules: shown before they hold` : `Allows ${covers}`;
  return [
    ...all,
    { label: "$(check-all) Allow for this session", detail, answer: { outcome: "allow", scope: "session" }, does },
    { label: "$(check-all) Allow for this project", detail, answer: { outcome: "allow", scope: "project" }, does },
  ];
}

/** Who asks: the agent; of one below others, the way from the root of the tree to it. */
export function whoAsks(question: Interaction): string {
  if (question.path.length < 2) return question.agent || "The agent";
  return question.path.map((step) => step.name || step.agent).join(" › ");
}

/** Why the question is asked, below its title. */
export function why(question: Interaction): string {
  const none = question.covers.length || question.form ? "" : " It can be allowed this once only.";
  return `${whoAsks(question)} asks, because of the rule ${question.rule}.${none}`;
}

/** All that would run or change, and what each answer covers, as Markdown that holds no markup. */
export function wholeOf(question: Interaction): string {
  const shown = question.content.map((one) =>
    one.type === "diff" ? fenced(one.patch.text, "diff") : fenced(one.content.text, ""),
  );
  const covers = question.covers.map((one) => `    ${one}`).join("\n");
  const remembered = covers
    ? `“For this session” and “for this project” would allow:\n\n${covers}`
    : question.form
      ? ""
      : "It can be allowed this once only.";
  const parts = ["# Magy asks", fenced(question.title, ""), ...shown, why(question), remembered].filter(Boolean);
  return `${parts.join("\n\n")}\n`;
}

function fenced(text: string, language: string): string {
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}

/** A text of at most `most` characters: both its ends, with how much is left out between them. */
export function shortened(text: string, most: number): string {
  if (text.length <= most) return text;
  const tail = Math.floor((most * 2) / 5);
  const head = most - tail;
  return `${text.slice(0, head)} … (+${text.length - most} characters) … ${text.slice(-tail)}`;
}

/** A link in a notification that runs a command. */
export function link(label: string, command: string, ...args: unknown[]): string {
  // A parenthesis would end the link, and is left as it is by the encoding.
  const said = encodeURIComponent(JSON.stringify(args)).replaceAll("(", "%28").replaceAll(")", "%29");
  return `[${label}](command:${command}${args.length ? `?${said}` : ""})`;
}

/** The same text for a notification, without a link: what a model wrote must not make one. */
export function unlinked(text: string): string {
  return text.replaceAll(/\]\((?=\w+:)/g, "]\u200b(");
}
