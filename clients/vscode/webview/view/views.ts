/** How each kind of block looks. A view keeps its element and changes only what is new. */

import type { Block, Content, Data } from "../state/blocks";
import { bodyAhead, isAhead, titleAhead } from "../state/ahead";
import { harmless } from "../state/harmless";
import { isAsked } from "../state/questions";
import { codeOf, graphMore, graphRest, noticeHead, planHead, planMark, spawnBody } from "../state/text";
import {
  agentCall, begun, childOf, contentText, duration, endedBadly, inputOf, isInGraph, isPicture, isSpawn, lifeOf, reportOf, ruleOf,
  senderOf, sessionOf, taskOf,
} from "../state/words";
import { plain, toEditor, uncut } from "./bounded";
import { codeBlock, output, partOf, sides } from "./code";
import { append, fill, h, icon, iconButton } from "./dom";
import type { Child } from "./dom";
import { Markdown, linkTo } from "./markdown";
import type { Graph } from "../../src/wire/generated";
import type { Offered } from "../../src/transcript/messages";
import { deliberationCard } from "./deliberation";
import { questionCard } from "./question";
import { fold, folded } from "./shown";
import type { Shown } from "./shown";
import { withCode } from "./spans";

export interface View {
  readonly element: HTMLElement;
  update(): void;
}

export function viewOf(shown: Shown, block: Block): View {
  const element = h("div", { class: `block ${block.kind}`, "data-kind": block.kind, "data-id": block.id });
  const view = made(shown, block, element);
  const update = () => {
    element.classList.toggle("undone", block.data.undone !== undefined);
    view();
  };
  return { element, update };
}

function made(shown: Shown, block: Block, element: HTMLElement): () => void {
  switch (block.kind) {
    case "user":
      return () => drawPrompt(shown, block, element);
    case "agent":
      return answer(shown, block, element);
    case "thought":
      return thought(shown, block, element);
    case "tool":
      return tool(shown, block, element);
    case "plan":
      return () => drawPlan(block, element);
    case "notice":
      return () => drawNotice(shown, block, element);
    case "mail":
      return mail(shown, block, element);
    case "question":
      return questionCard(shown, block, element);
  }
}

// --- what is said -------------------------------------------------------------------------------

function markdown(shown: Shown, element: HTMLElement): Markdown {
  return new Markdown(element, {
    code: (text, info, open) => codeBlock(shown, text, info, open),
    whole: (text) => toEditor(shown, "Message", text, "markdown"),
    link: (href) => shown.post({ type: "link", href }),
  });
}

function answer(shown: Shown, block: Block, element: HTMLElement): () => void {
  const body = h("div", { class: "markdown" });
  element.append(body);
  const shownText = markdown(shown, body);
  return () => shownText.show(block.data.text ?? "", block.data.whole === true);
}

/** Lines and characters from which on a prompt is folded, and how many are shown then. */
const LONG = { lines: 24, characters: 6_000 };
const BEGINNING = { lines: 8, characters: 2_000 };

function drawPrompt(shown: Shown, block: Block, element: HTMLElement): void {
  const { data } = block;
  // One that waits stands above the input.
  element.hidden = data.queue === "waiting";
  if (element.hidden) return fill(element);
  const task = block.id.endsWith(":task");
  fill(
    element,
    h("span", { class: "visually-hidden" }, task ? "Task: " : "You: "),
    ...said(shown, block),
    data.queue === "dropped" && h("span", { class: "remark" }, "Dropped"),
    data.undone !== undefined && h("span", { class: "remark" }, "Undone"),
    promptActions(shown, block),
  );
}

function promptActions(shown: Shown, block: Block): HTMLElement {
  const bar = h("div", { class: "prompt-actions" });
  const opened = shown.t.turns.has(block.id) && block.data.undone === undefined && !block.id.endsWith(":task");
  append(bar, [
    opened && iconButton("edit", "Edit and send again", () => shown.edit(block)),
    opened && iconButton("discard", "Go back to before this message", () => shown.back(block)),
    iconButton("copy", "Copy message", () => shown.post({ type: "copy", text: (block.data.content ?? []).map(contentText).join("\n") })),
  ]);
  return bar;
}

/** The words of a prompt or message, the beginning if there are many; then what went along. */
function said(shown: Shown, block: Block): Child[] {
  const content = block.data.content ?? [];
  const text = harmless(content.filter((one) => one.type === "text").map(contentText).join("\n"));
  const lines = text.split("\n");
  const long = lines.length > LONG.lines || text.length > LONG.characters;
  const folds = long || lines.length > 1;
  const cut = folds && folded(shown, block, long);
  const count = lines.length > BEGINNING.lines ? BEGINNING.lines : 1;
  return [
    h("div", { class: "words" }, ...(cut ? [start(lines.slice(0, count).join("\n"))] : plain(shown, "Message", text))),
    (cut || long) && h(
      "button",
      { type: "button", class: "link-button", onclick: () => fold(shown, block, !cut) },
      cut ? `Show ${lines.length > count ? `${lines.length - count} more lines` : "more"}` : "Show less",
    ),
    along(shown, content.filter((one) => one.type !== "text")),
  ];
}

function start(words: string): string {
  const most = BEGINNING.characters;
  return words.length > most ? `${uncut(words.slice(0, most))}…` : words;
}

function along(shown: Shown, content: readonly Content[]): Child {
  if (content.length === 0) return undefined;
  return h("div", { class: "along" }, ...content.map((one) => attachment(shown, one)));
}

/** What the editor reported went along; it is at no place of its own. */
const PROBLEMS = "magy:diagnostics";

function attachment(shown: Shown, one: Content): HTMLElement {
  const uri = one.uri ?? one.resource?.uri ?? "";
  const picture = shown.pictures.get(uri.replace(/^magy-blob:/, ""));
  if (picture) return h("img", { src: picture, alt: one.name ?? "Picture", class: "thumbnail" });
  if (uri === PROBLEMS) return h("span", { class: "chip", title: harmless(one.resource?.text ?? "") }, icon("warning"), " problems");
  const name = harmless(contentText(one).replace(/^\[|\]$/g, ""));
  if (one.type === "image" || isPicture(one) || uri.startsWith("magy-blob:")) {
    return h("span", { class: "chip" }, icon("file-media"), ` ${name}`);
  }
  const link = linkTo(uri, { link: (href) => shown.post({ type: "link", href }) });
  link.classList.add("chip");
  append(link, [icon("file"), ` ${name}`]);
  return link;
}

// --- what folds ---------------------------------------------------------------------------------

interface Section {
  icon: HTMLElement;
  head: Child[];
  /** What is read of the head before its words, by those who do not see the icon. */
  spoken: string;
  /** Buttons behind the head. */
  aside?: Child[];
  usual: boolean;
  /** Makes the body; undefined: there is none. */
  body: (() => Child[]) | undefined;
}

/** A head that folds a body. The button stays the same element, so that the focus does. */
function section(shown: Shown, block: Block, element: HTMLElement): (section: Section) => void {
  const head = h("button", { type: "button", class: "head" });
  const aside = h("span", { class: "aside" });
  const body = h("div", { class: "body" });
  element.append(h("div", { class: "row" }, head, aside), body);
  let usual = true;
  head.addEventListener("click", () => {
    if (!head.hasAttribute("aria-expanded")) return;
    fold(shown, block, !folded(shown, block, usual));
  });
  return (now) => {
    usual = now.usual;
    const closed = now.body === undefined || folded(shown, block, usual);
    fill(head, now.icon, h("span", { class: "visually-hidden" }, now.spoken), h("span", { class: "head-words" }, ...now.head));
    if (now.body) {
      head.setAttribute("aria-expanded", String(!closed));
      head.append(icon(closed ? "chevron-right" : "chevron-down", "twistie"));
    } else head.removeAttribute("aria-expanded");
    fill(aside, ...(now.aside ?? []));
    body.hidden = closed;
    fill(body, ...(closed || !now.body ? [] : now.body()));
  };
}

function thought(shown: Shown, block: Block, element: HTMLElement): () => void {
  const show = section(shown, block, element);
  return () => {
    const lines = lineCount((block.data.text ?? "").trimEnd());
    show({
      icon: icon(block.data.whole ? "lightbulb" : "loading", block.data.whole ? "" : "codicon-modifier-spin"),
      spoken: "",
      head: [block.data.whole ? "Thought" : "Thinking…", " ", h("span", { class: "dim" }, `${lines} line${lines === 1 ? "" : "s"}`)],
      usual: true,
      body: () => [h("div", { class: "thinking" }, ...plain(shown, "Thinking", block.data.text ?? ""))],
    });
  };
}

/** How many lines a text has, of which a new one comes with each delta. */
function lineCount(text: string): number {
  let count = text === "" ? 0 : 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}

function statusIcon(status: string | undefined): HTMLElement {
  switch (status) {
    case "completed":
      return icon("check", "good");
    case "failed":
      return icon("error", "bad");
    case "cancelled":
      return icon("circle-slash", "dim");
    case "in_progress":
    case "running":
      return icon("loading", "codicon-modifier-spin busy");
    case "waiting":
      return icon("question", "asks");
    case "closed":
      return icon("primitive-square", "dim");
    default:
      return icon("circle-outline", "dim");
  }
}

function spokenStatus(status: string | undefined): string {
  return `${(status ?? "pending").replace("_", " ")}: `;
}

function tool(shown: Shown, block: Block, element: HTMLElement): () => void {
  const show = section(shown, block, element);
  return () => {
    const { data } = block;
    element.classList.toggle("spawn", isSpawn(data));
    if (isSpawn(data)) return show(spawn(shown, block));
    const call = agentCall(shown.t, data);
    if (call) return show({ ...callSection(shown, block, [h("span", { class: "dim" }, "Agents: "), call]), usual: !["pending", "failed"].includes(data.status ?? "") });
    if (data.graph) return show(graph(shown, block, data.graph));
    if (data.deliberation) {
      const card = data.deliberation;
      return show({
        ...callSection(shown, block, [h("span", { class: "title" }, harmless(data.title ?? data.name ?? "…"))]),
        usual: false,
        body: () => [deliberationCard(shown, card), ruleLine(data)],
      });
    }
    if (isAhead(data)) return show(ahead(shown, data));
    const changed = (data.parts ?? []).some((part) => part.type === "diff");
    show({
      ...callSection(shown, block, [h("span", { class: "title" }, harmless(data.title ?? data.name ?? "…"))]),
      usual: isAsked(shown.t, block) || (data.status === "completed" && !changed) || !(data.parts?.length || data.tail),
    });
  };
}

/** A call that waits for its turn, or for the decision about one before it. */
function ahead(shown: Shown, data: Data): Section {
  const { command, removed, added, path } = bodyAhead(data);
  const has = command !== "" || removed !== "" || added !== "";
  return {
    icon: statusIcon(data.status),
    spoken: spokenStatus(data.status),
    head: [h("span", { class: "title" }, titleAhead(data))],
    usual: false,
    body: has ? () => [command && output(shown, command, "Command"), (removed || added) && sides(shown, removed, added, path)] : undefined,
  };
}

function callSection(shown: Shown, block: Block, words: Child[]): Omit<Section, "usual"> {
  const { data } = block;
  const path = data.sort === "execute" ? undefined : data.locations?.[0]?.path;
  const has = Boolean(data.parts?.length || data.tail || codeOf(data).length);
  const rule = ruleOf(data);
  return {
    icon: statusIcon(data.status),
    spoken: spokenStatus(data.status),
    head: [...words, badly(data), remark(duration(data.duration))],
    aside: [path && !codeOf(data).length && iconButton("go-to-file", `Open ${path}`, () => shown.post({ type: "open", path }))],
    body: has || rule ? () => [...callBody(shown, data), ruleLine(data)] : undefined,
  };
}

/** Which rule decided about a call. */
function ruleLine(data: Data): Child {
  const rule = ruleOf(data);
  return rule && h("div", { class: "rule" }, icon("law"), " ", ...withCode(rule));
}

/** A graph of tasks: a line for each, which leads to the transcript of its agent, and what they come to. */
function graph(shown: Shown, block: Block, now: Graph): Section {
  const { data } = block;
  const line = (task: Graph["tasks"][number]) => {
    const { id, sessionId } = task;
    const open = () => sessionId && shown.post({ type: "child", action: "show", sessionId });
    const found = h("div", { class: "task" },
      h("span", {}, harmless(task.line)),
      sessionId ? iconButton("comment-discussion", `Open the transcript of ${id}`, open) : "");
    found.style.paddingInlineStart = `${Math.min(task.depth, 8) * 1.2}em`;
    return found;
  };
  return {
    ...callSection(shown, block, [h("span", { class: "title" }, harmless(data.title ?? data.name ?? "…"))]),
    usual: false,
    body: () => [
      h("div", { class: "graph" }, ...now.tasks.map(line), ...graphMore(now).map((words) => h("div", { class: "dim" }, words))),
      ...graphRest(data).map((part) => partOf(shown, part, data.title ?? "Output")),
      ruleLine(data),
    ],
  };
}

function callBody(shown: Shown, data: Data): Child[] {
  const title = data.title ?? "Output";
  return [
    ...codeOf(data).map((part) => partOf(shown, part, title)),
    ...(data.parts ?? []).map((part) => partOf(shown, part, title)),
    data.tail ? output(shown, data.tail, title) : undefined,
  ];
}

function badly(data: Data): Child {
  const word = endedBadly(data);
  return word && h("span", { class: "bad" }, ` ${word.replace("_", " ")}`);
}

function remark(text: string): Child {
  return text && h("span", { class: "dim" }, ` ${text}`);
}

/** A child is one line that shows live how it is and what it costs. */
function spawn(shown: Shown, block: Block): Section {
  const { data } = block;
  const input = inputOf(data);
  const id = childOf(shown.t, block);
  const child = shown.t.children.get(id);
  const life = child ? lifeOf(child) : undefined;
  const exists = begun(shown.t, block);
  return {
    icon: statusIcon(child ? child.state : data.status),
    spoken: spokenStatus(child ? child.state : data.status),
    head: [
      h("strong", {}, child?.agent ?? input.agent ?? "agent"), " ", taskOf(input),
      !child && badly(data),
      life?.questions && h("span", { class: "asks" }, ` ${life.questions}`),
      remark(life?.rest ?? ""),
    ],
    aside: exists ? childActions(shown, id, child?.state) : [],
    usual: exists,
    body: () => [h("div", { class: "thinking" }, ...plain(shown, "Task", spawnBody(shown.t, block))), rule(data)],
  };
}

function rule(data: Data): Child {
  const said = ruleOf(data);
  return said && h("div", { class: "rule" }, icon("law"), " ", ...withCode(said));
}

function childActions(shown: Shown, sessionId: string, state: string | undefined): Child[] {
  const act = (action: "show" | "wait" | "close" | "stop") => () => shown.post({ type: "child", action, sessionId });
  const works = ["queued", "running", "waiting"].includes(state ?? "");
  return [
    iconButton("comment-discussion", "Open its transcript, to watch and to talk", act("show")),
    works && iconButton("watch", "Wait for its result", act("wait")),
    works && iconButton("debug-stop", "Stop what it does", act("stop")),
    state !== "closed" && iconButton("close", "Close it", act("close")),
  ];
}

// --- the rest -----------------------------------------------------------------------------------

function mail(shown: Shown, block: Block, element: HTMLElement): () => void {
  if (!block.data.report) {
    element.classList.add("message");
    return () => drawMessage(shown, block, element);
  }
  const show = section(shown, block, element);
  return () => {
    const { data } = block;
    element.hidden = isInGraph(shown.t, block);
    if (element.hidden) return;
    const sender = sessionOf(shown.t, block);
    show({
      icon: statusIcon(data.report?.status),
      spoken: "result, ",
      head: [h("strong", {}, data.mail?.agent ?? "agent"), " ", harmless(data.mail?.name ?? ""), remark(`result · ${reportOf(data)}`)],
      aside: [sender && iconButton("comment-discussion", "Open its transcript", () => shown.post({ type: "child", action: "show", sessionId: sender }))],
      usual: true,
      body: () => {
        const body = h("div", { class: "markdown" });
        markdown(shown, body).show((data.content ?? []).map(contentText).join("\n"), true);
        return [body];
      },
    });
  };
}

function drawMessage(shown: Shown, block: Block, element: HTMLElement): void {
  const { data } = block;
  element.hidden = data.queue === "waiting";
  if (!data.content) return fill(element, h("span", { class: "dim" }, `Data from ${senderOf(data)}, for no model to read`));
  fill(element, h("div", { class: "speaker" }, senderOf(data)), ...said(shown, block));
}

function drawPlan(block: Block, element: HTMLElement): void {
  const list = h("ul", { role: "list" });
  for (const entry of block.data.entries ?? []) {
    const state = entry.status;
    list.append(
      h(
        "li",
        { class: state },
        state === "in_progress" ? icon("arrow-right", "busy") : icon(state === "completed" ? "pass-filled" : state === "cancelled" ? "circle-slash" : "circle-large-outline", state === "completed" ? "good" : "dim"),
        h("span", { class: "visually-hidden" }, `${planMark(state) === "·" ? "to do" : state.replace("_", " ")}: `),
        h("span", {}, harmless(entry.content)),
      ),
    );
  }
  fill(element, h("div", { class: "plan-head" }, icon("checklist"), " ", planHead(block.data)), list);
}

const NOTICES: Readonly<Record<string, string>> = { error: "error", warning: "warning", info: "info" };

function drawNotice(shown: Shown, block: Block, element: HTMLElement): void {
  const severity = block.data.severity ?? "info";
  element.dataset.severity = severity;
  fill(
    element,
    icon(NOTICES[severity] ?? "info", severity === "error" ? "bad" : severity === "warning" ? "asks" : "dim"),
    h("span", {}, h("span", { class: "notice-title" }, harmless(noticeHead(block.data))), ...(block.data.description ? [": ", ...withCode(block.data.description)] : [])),
    severity === "error" && remedies(shown, block.data.description ?? ""),
  );
}

/** What may help where a turn ended with an error. */
function remedies(shown: Shown, description: string): HTMLElement {
  const button = (words: string, command: Offered) =>
    h("button", { type: "button", class: "button secondary", onclick: () => shown.post({ type: "run", command }) }, words);
  return h(
    "div",
    { class: "remedies" },
    h("button", { type: "button", class: "button again", onclick: () => shown.ask("Try again.") }, "Try Again"),
    /\bkeys?\b|_API_KEY/.test(description) && button("Set API Key…", "setApiKey"),
    button("Choose Model…", "selectModel"),
    button("Run Doctor", "runDoctor"),
  );
}
