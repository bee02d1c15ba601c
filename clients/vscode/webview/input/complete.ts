/** Completion while a prompt is written: a list above the input, asked of the server. */

import type { Completion } from "../../src/wire/generated";
import { oneLine } from "../state/harmless";
import { fill, h, icon } from "../view/dom";

/** What a prompt ends in where it is completed: `/action`, `@spawn agent`, `@mention`. */
const TYPED = /^\s*(?:\/[a-z0-9_-]*|@spawn[ \t]+\S*)$|(?:^|[^\p{L}\p{N}_.@/\\+-])@(?:"[^"\n]*|[^\s"]*)$/u;

const ICONS: Readonly<Record<string, string>> = {
  file: "file", directory: "folder", symbol: "symbol-method", skill: "mortar-board", action: "zap", agent: "robot", command: "terminal",
};

export interface Asked {
  id: number;
  before: string;
}

export class Completer {
  readonly element = h("ul", { class: "completions", role: "listbox", id: "completions", "aria-label": "Completions", hidden: true });
  private items: Completion[] = [];
  private prefix = "";
  private chosen = 0;
  private asked = 0;
  private known = "";

  constructor(
    private readonly input: HTMLTextAreaElement,
    private readonly ask: (asked: Asked) => void,
    private readonly done: () => void,
  ) {
    input.setAttribute("aria-controls", "completions");
    input.setAttribute("aria-autocomplete", "list");
    input.setAttribute("aria-expanded", "false");
  }

  get open(): boolean {
    return !this.element.hidden;
  }

  /** The text before the caret changed. */
  typed(): void {
    const before = this.input.value.slice(0, this.input.selectionStart);
    if (this.input.selectionStart !== this.input.selectionEnd || !TYPED.test(before)) return this.close();
    this.asked += 1;
    this.known = before;
    this.ask({ id: this.asked, before });
  }

  /** The answer to what was asked; one that is late is left out. */
  arrived(id: number, prefix: string, items: Completion[]): void {
    if (id !== this.asked || this.known !== this.input.value.slice(0, this.input.selectionStart)) return;
    if (document.activeElement !== this.input) return;
    this.prefix = prefix;
    this.items = items;
    this.chosen = 0;
    if (items.length === 0) return this.close();
    this.draw();
  }

  close(): void {
    this.asked += 1;
    this.element.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  /** Whether the key was for the list. */
  key(event: KeyboardEvent): boolean {
    if (!this.open) return false;
    const { length } = this.items;
    if (event.key === "ArrowDown") this.choose((this.chosen + 1) % length);
    else if (event.key === "ArrowUp") this.choose((this.chosen + length - 1) % length);
    else if (event.key === "Escape") this.close();
    else if (event.key === "Tab" || (event.key === "Enter" && !event.shiftKey)) this.take(this.chosen);
    else return false;
    event.preventDefault();
    return true;
  }

  private draw(): void {
    fill(this.element, ...this.items.map((item, at) => this.row(item, at)));
    this.element.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    this.choose(0);
  }

  private row(item: Completion, at: number): HTMLElement {
    const row = h(
      "li",
      { role: "option", id: `completion-${at}`, "aria-selected": "false" },
      icon(ICONS[item.kind] ?? "symbol-misc"),
      h("span", { class: "completion-label" }, oneLine(item.label)),
      h("span", { class: "completion-detail" }, oneLine(item.detail ?? "")),
    );
    // The focus stays in the input.
    row.addEventListener("mousedown", (event) => {
      event.preventDefault();
      this.take(at);
    });
    return row;
  }

  private choose(at: number): void {
    this.element.children[this.chosen]?.setAttribute("aria-selected", "false");
    this.chosen = at;
    const row = this.element.children[at];
    row?.setAttribute("aria-selected", "true");
    row?.scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", `completion-${at}`);
  }

  private take(at: number): void {
    const item = this.items[at];
    if (!item) return;
    const end = this.input.selectionStart;
    const into = item.kind === "directory" ? "" : " ";
    this.input.setRangeText(item.text + into, end - this.prefix.length, end, "end");
    this.close();
    this.done();
    // A directory is entered: what is in it comes next.
    if (item.kind === "directory") this.typed();
  }
}
