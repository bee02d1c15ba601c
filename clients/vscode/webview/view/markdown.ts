/**
 * Markdown of models as nodes. Raw HTML is text, pictures are links, and a link does nothing by
 * itself: the host opens it, if it may be opened.
 *
 * A text that grows costs what its last block costs: blocks before it are neither parsed nor
 * touched again.
 */

import MarkdownIt from "markdown-it";
import type Token from "markdown-it/lib/token.mjs";
import { harmless } from "../state/harmless";
import { uncut } from "./bounded";
import { h } from "./dom";

/** Characters and lines of a text that are drawn as Markdown; of a longer one, how much of its end, as written. */
const LONGEST = 100_000;
const LINES = 5_000;
const END = 2_000;
/** Lists and quotations inside each other, in levels of tokens, that are drawn as such: what is further inside has no
 * room for its words, and the parser leaves out what is very far inside. */
const DEEPEST = 24;

export interface MarkdownHost {
  /** Draws a block of code. `open`: it still grows. */
  code(text: string, info: string, open: boolean): HTMLElement;
  /** A way to all of a text of which only the ends are drawn. */
  whole(text: () => string): HTMLElement;
  link(href: string): void;
}

const parser = new MarkdownIt({ html: false, linkify: true, breaks: false });
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });
// Nothing is followed here; the host decides, by the scheme, what may be opened.
parser.validateLink = (href) => !/^\s*(?:javascript|vbscript|data|command|vscode|blob):/i.test(href);

interface Done {
  /** Where the block begins in the text. */
  start: number;
  node: Element;
  source: string;
}

/** A text in an element, which is patched as the text grows. */
export class Markdown {
  private blocks: Done[] = [];
  private text = "";
  private whole = false;
  private rest: Rest | undefined;

  constructor(
    readonly element: HTMLElement,
    private readonly host: MarkdownHost,
  ) {}

  /** Shows the text; `whole`: nothing more comes. */
  show(raw: string, whole: boolean): void {
    const first = beginning(raw);
    const all = first.length === raw.length;
    // A block of code that is cut never becomes whole: nobody applies half of it.
    this.patchTo(harmless(first), whole && all);
    this.patchRest(raw, first.length);
  }

  private patchTo(text: string, whole: boolean): void {
    if (text === this.text && whole === this.whole) return;
    const grows = text.startsWith(this.text);
    // The last block may become another one, and so may all if the text is not what it was.
    const kept = grows ? Math.max(0, this.blocks.length - 1) : 0;
    const from = grows ? (this.blocks[kept]?.start ?? 0) : 0;
    this.text = text;
    this.whole = whole;
    // A reference may be defined behind the link that needs it.
    const anew = whole && /^ {0,3}\[[^\]]+\]:/m.test(text);
    this.patch(anew ? 0 : kept, this.parse(anew ? 0 : from));
  }

  /** The blocks from `from` on, as tokens with their places. */
  private parse(from: number): { tokens: Token[]; start: number; end: number }[] {
    const text = this.text.slice(from);
    const lines = lineStarts(text);
    const found: { tokens: Token[]; start: number; end: number }[] = [];
    let group: Token[] = [];
    for (const token of parser.parse(text, {})) {
      group.push(token);
      if (token.level !== 0 || token.nesting === 1) continue;
      const map = group[0]?.map ?? [0, 0];
      found.push({ tokens: group, start: from + (lines[map[0]] ?? 0), end: from + (lines[map[1]] ?? text.length) });
      group = [];
    }
    return found;
  }

  private patch(kept: number, groups: { tokens: Token[]; start: number; end: number }[]): void {
    const blocks = this.blocks.slice(0, kept);
    groups.forEach((group, at) => {
      const before = this.blocks[kept + at];
      const last = at === groups.length - 1;
      const source = `${group.tokens[0]?.type}${this.text.slice(group.start, group.end)}${last && !this.whole ? "…" : ""}`;
      if (before?.source === source) return void blocks.push({ ...before, start: group.start });
      const deep = group.tokens.some((token) => token.level > DEEPEST);
      const node = deep
        ? h("p", { class: "as-written" }, this.text.slice(group.start, group.end).trimEnd())
        : this.draw(group.tokens, last && !this.whole, before?.node);
      if (before && before.node !== node) before.node.replaceWith(node);
      else if (!before) this.element.insertBefore(node, this.rest?.element ?? null);
      blocks.push({ start: group.start, node, source });
    });
    for (const gone of this.blocks.slice(blocks.length)) gone.node.remove();
    this.blocks = blocks;
  }

  /** What of a long text comes behind its beginning: how much that is, its end, and a way to all of it. */
  private patchRest(raw: string, from: number): void {
    if (from === raw.length) {
      this.rest?.element.remove();
      this.rest = undefined;
      return;
    }
    this.rest ??= new Rest(this.host);
    this.rest.show(raw, from);
    if (this.element.lastElementChild !== this.rest.element) this.element.append(this.rest.element);
  }

  private draw(tokens: Token[], grows: boolean, old: Element | undefined): Element {
    const [first] = tokens;
    if (first?.type === "fence" || first?.type === "code_block") {
      const closed = !grows;
      const code = first.content.replace(/\n$/, "");
      if (!closed && old instanceof HTMLElement && grew(old, code, first.info)) return old;
      return this.host.code(code, first.info, !closed);
    }
    const root = h("div", {});
    nodes(tokens, root, this.host);
    return root.children.length === 1 && root.firstElementChild ? root.firstElementChild : root;
  }
}

/** The end of a long text, which may still grow. */
class Rest {
  private raw = "";
  private readonly count = h("span", { class: "dim" });
  private readonly end = h("pre", { class: "plain-rest", tabindex: 0, role: "group", "aria-label": "End" });
  readonly element: HTMLElement;

  constructor(host: MarkdownHost) {
    this.element = h("div", {}, h("p", {}, this.count, host.whole(() => harmless(this.raw))), this.end);
  }

  show(raw: string, from: number): void {
    if (raw === this.raw) return;
    this.raw = raw;
    const end = raw.slice(Math.max(raw.length - END, from));
    const left = raw.length - from - end.length;
    this.count.textContent = left > 0 ? `… ${left.toLocaleString("en")} characters … ` : "";
    this.end.textContent = harmless(uncut(end));
  }
}

/** What is drawn of a text as Markdown: all of it, or whole lines, unless the last one is very long. */
function beginning(raw: string): string {
  let end = 0;
  for (let line = 0; line < LINES; line += 1) {
    const next = raw.indexOf("\n", end) + 1;
    if (next === 0 && raw.length <= LONGEST) return raw;
    if (next === 0 || next > LONGEST) return end > LONGEST - END ? raw.slice(0, end) : uncut(raw.slice(0, LONGEST));
    end = next;
  }
  return raw.slice(0, end);
}

/** Appends to a block of code that only grew; returns whether it could. */
function grew(old: HTMLElement, code: string, info: string): boolean {
  const shown = old.querySelector("code");
  if (!old.hasAttribute("data-open") || old.dataset.info !== info || !shown) return false;
  const text = shown.firstChild;
  if (!(text instanceof Text) || shown.childNodes.length !== 1 || !code.startsWith(text.data)) return false;
  text.appendData(code.slice(text.data.length));
  return true;
}

function lineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}

const TAGS = new Set([
  "p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "table", "thead", "tbody", "tr", "th", "td",
  "strong", "em", "s", "hr",
]);

/** Puts what the tokens say into an element. */
function nodes(tokens: readonly Token[], into: Element, host: MarkdownHost): void {
  const stack: Element[] = [into];
  const top = () => stack[stack.length - 1] ?? into;
  for (const token of tokens) {
    if (token.hidden) continue;
    if (token.nesting === 1) {
      const made = opening(token, host);
      top().append(made);
      // A wide table scrolls, and not the page.
      stack.push(made.classList.contains("table") ? (made.firstElementChild ?? made) : made);
    } else if (token.nesting === -1) {
      if (stack.length > 1) stack.pop();
    } else if (token.type === "inline") nodes(token.children ?? [], top(), host);
    else top().append(leaf(token, host));
  }
}

function opening(token: Token, host: MarkdownHost): Element {
  if (token.type === "link_open") return linkTo(token.attrGet("href") ?? "", host);
  if (token.type === "table_open") {
    return h("div", { class: "table", tabindex: 0, role: "group", "aria-label": "Table" }, h("table"));
  }
  // Headings of an answer stand below those of the page.
  const heading = /^h([1-6])$/.exec(token.tag);
  if (heading) return h("div", { role: "heading", "aria-level": Number(heading[1]) + 2, class: `h${heading[1]}` });
  const element = document.createElement(TAGS.has(token.tag) ? token.tag : "span");
  const start = token.attrGet("start");
  if (token.tag === "ol" && start) element.setAttribute("start", start);
  const align = /text-align:\s*(left|right|center)/.exec(token.attrGet("style") ?? "");
  if (align) element.classList.add(`align-${align[1]}`);
  return element;
}

function leaf(token: Token, host: MarkdownHost): Node {
  switch (token.type) {
    case "text":
    case "text_special":
    case "html_inline":
    case "html_block":
      return document.createTextNode(token.content);
    case "code_inline":
      return inlineCode(token.content, host);
    case "softbreak":
      return document.createTextNode("\n");
    case "hardbreak":
      return h("br");
    case "hr":
      return h("hr");
    case "fence":
    case "code_block":
      return host.code(token.content.replace(/\n$/, ""), token.info, false);
    case "image": {
      const link = linkTo(token.attrGet("src") ?? "", host);
      link.append(`[image: ${token.content || "picture"}]`);
      return link;
    }
    default:
      return document.createTextNode(token.content);
  }
}

/** A link that the host opens. It has no address that a browser could follow. */
export function linkTo(href: string, host: Pick<MarkdownHost, "link">): HTMLElement {
  const open = (event: Event) => {
    event.preventDefault();
    host.link(href);
  };
  return h("a", {
    role: "link",
    tabindex: 0,
    title: decoded(href),
    class: "link",
    onclick: open,
    onkeydown: (event: KeyboardEvent) => event.key === "Enter" && open(event),
  });
}

function decoded(href: string): string {
  try {
    return harmless(decodeURI(href));
  } catch {
    return harmless(href);
  }
}

const PLACE = /^(?:\.{0,2}\/)?(?:[\w@.+-]+\/)*[\w@+-]*\.[A-Za-z]\w{0,9}(?:[:#]L?\d+(?:-L?\d+)?)?$/;

/** Code in a line; what looks like a file can be opened. */
function inlineCode(text: string, host: MarkdownHost): Node {
  const code = h("code", {}, text);
  if (text.length > 300 || !PLACE.test(text) || !/[/]|[:#]L?\d|^[\w-]+\.\w+$/.test(text)) return code;
  const link = linkTo(text, host);
  link.classList.add("place");
  link.append(code);
  return link;
}
