/** Where a person writes: the text, what goes along, and how it is sent. */

import type { Along, Chip, Delivery, Picture } from "../../src/transcript/messages";
import type { Block } from "../state/blocks";
import { oneLine } from "../state/harmless";
import { REVIEWS, nextMode } from "../state/modes";
import { clipped, promptWords } from "../state/words";
import { fill, h, icon, iconButton } from "../view/dom";
import type { Shown } from "../view/shown";
import { Completer } from "./complete";
import { takePictures } from "./pictures";
import { drawQueue } from "./queue";
import { RestoreCard } from "./restore";

/** Prompts that are remembered. */
const REMEMBERED = 50;
/** Milliseconds that a prompt usually takes to the server. */
const MOMENT = 1_500;

export class Input {
  readonly element: HTMLElement;
  readonly completer: Completer;
  readonly restore: RestoreCard;
  history: string[] = [];
  private readonly text = h("textarea", { rows: 1, "aria-label": "Message to the agent", role: "combobox", spellcheck: "false" });
  private readonly chips = h("div", { class: "chips", role: "group", "aria-label": "What goes along" });
  private readonly queue = h("div", { class: "queue", role: "group", "aria-label": "Prompts that wait", hidden: true });
  private readonly pickers = h("div", { class: "pickers" });
  private readonly send = h("button", { type: "button", class: "icon-button send" });
  private readonly stop = iconButton("stop-circle", "Stop what runs (Escape twice)", () => this.cancel(), "stop");
  private readonly note = h("div", { class: "input-note", role: "status" });
  private offered: Chip[] = [];
  private readonly turned = new Map<string, boolean>();
  private pictures: Picture[] = [];
  /** What of `@problems` and `@terminal` the text names. */
  private named = "";
  private at = -1;
  private draft = "";
  /** Who works when nothing is only planned. */
  private worker = "";
  private escaped = -Infinity;
  /** Prompts until the server has accepted them. */
  private readonly unsent = new Map<string, { text: string; pictures: Picture[] }>();

  constructor(
    private readonly shown: Shown,
    private readonly changed: (text: string) => void,
  ) {
    this.completer = new Completer(this.text, (asked) => shown.post({ type: "complete", ...asked }), () => this.typed());
    this.restore = new RestoreCard(shown, () => this.restoreClosed());
    this.send.addEventListener("click", () => this.submit("auto"));
    fill(this.send, icon("send"));
    this.text.placeholder = "Ask Magy, @ mentions, / acts";
    const attach = iconButton("mention", "Mention a file or a symbol (@)", () => this.insert("@"));
    const box = h(
      "div",
      { class: "input-box" },
      this.chips,
      this.text,
      h("div", { class: "input-bar" }, attach, this.pickers, h("span", { class: "spring" }), this.stop, this.send),
    );
    this.element = h("div", { class: "input" }, this.queue, this.restore.element, this.completer.element, box, this.note);
    this.listen(box);
    this.typed();
  }

  get value(): string {
    return this.text.value;
  }

  set value(text: string) {
    this.text.value = text;
    this.typed();
  }

  focus(): void {
    this.text.focus();
  }

  /** What the person took out of what goes along, or put in, by the ids of chips. */
  get toggled(): [string, boolean][] {
    return [...this.turned];
  }

  set toggled(toggled: readonly [string, boolean][]) {
    for (const [id, goes] of toggled) this.turned.set(id, goes);
    this.drawChips();
  }

  /** Puts pictures to those that go along. */
  addPictures(pictures: readonly Picture[]): void {
    if (pictures.length) this.havePictures([...this.pictures, ...pictures]);
  }

  /** Puts text at the caret, with room around it. */
  insert(text: string): void {
    const before = this.text.value.slice(0, this.text.selectionStart);
    const room = before === "" || /\s$/.test(before) ? "" : " ";
    this.text.focus();
    this.text.setRangeText(room + text, this.text.selectionStart, this.text.selectionEnd, "end");
    this.typed();
    this.completer.typed();
  }

  /** Sends words as a prompt; what is written in the input stays there. */
  ask(text: string): void {
    const messageId = newMessage();
    this.unsent.set(messageId, { text, pictures: [] });
    this.shown.post({ type: "prompt", messageId, text, delivery: "auto", along: { context: [], pictures: [] } });
  }

  /** Changes to the next mode: review edits, ask before edits, accept edits, plan. */
  nextMode(): void {
    const { changes, label } = nextMode(this.shown.t, this.worker);
    for (const change of changes) this.shown.post({ type: "option", ...change });
    if (label) this.shown.say(label);
  }

  /** Session, queue or options are not as before. */
  update(): void {
    const { t } = this.shown;
    const runs = t.state !== "idle";
    this.stop.hidden = !runs;
    const label = runs ? "Send now, into the running turn (Enter; Alt+Enter queues, Ctrl+Enter interrupts)" : "Send (Enter)";
    this.send.title = label;
    this.send.setAttribute("aria-label", label);
    drawQueue(this.shown, this.queue, (one) => this.takeBack(one.messageId, one.text));
    this.drawPickers();
  }

  /** What may go along, as the editor is now. */
  offer(chips: Chip[]): void {
    this.offered = chips;
    this.drawChips();
  }

  accepted(messageId: string): void {
    this.unsent.delete(messageId);
    if (this.note.dataset.about === messageId) this.tell("");
  }

  /** Says after a moment what the server has not taken yet: it stands nowhere else until then. */
  private tellOfUnsent(messageId: string): void {
    setTimeout(() => {
      const unsent = this.unsent.get(messageId);
      if (!unsent?.text) return;
      this.tell(`On its way: ${clipped(unsent.text)}`);
      this.note.dataset.about = messageId;
    }, MOMENT);
  }

  refused(messageId: string, text: string, message: string): void {
    const unsent = this.unsent.get(messageId);
    this.unsent.delete(messageId);
    if (this.text.value.trim() === "") {
      this.value = text;
      this.havePictures(unsent?.pictures ?? []);
    } else this.remember(text);
    this.tell(message);
  }

  tell(message: string): void {
    this.note.textContent = message;
    delete this.note.dataset.about;
  }

  /** An earlier prompt is written anew, and takes its place when it is sent. */
  edit(block: Block): void {
    const words = promptWords(block);
    if (this.text.value.trim() !== "") this.remember(this.text.value);
    this.value = words;
    this.restore.ask({ turnId: block.id, again: true });
    this.text.focus();
  }

  private restoreClosed(): void {
    this.text.focus();
  }

  // --- keys -----------------------------------------------------------------------------------

  private listen(box: HTMLElement): void {
    this.text.addEventListener("input", () => {
      this.tell("");
      this.at = -1;
      this.typed();
      this.completer.typed();
    });
    this.text.addEventListener("blur", () => this.completer.close());
    this.text.addEventListener("click", () => this.completer.close());
    this.text.addEventListener("keydown", (event) => this.key(event));
    takePictures(box, (pictures, uris) => {
      this.addPictures(pictures);
      if (uris.length > 0) this.shown.post({ type: "dropped", uris });
    }, (message) => this.tell(message));
  }

  private key(event: KeyboardEvent): void {
    if (event.isComposing || this.completer.key(event)) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.submit(event.altKey ? "queue" : event.ctrlKey || event.metaKey ? "interrupt" : "auto");
    } else if (event.key === "Escape") this.escape();
    else if (event.key === "ArrowUp" && !event.shiftKey && this.onEdge(0)) this.recall(1, event);
    else if (event.key === "ArrowDown" && !event.shiftKey && this.onEdge(1)) this.recall(-1, event);
  }

  /** Escape twice stops what runs. */
  private escape(): void {
    const now = performance.now();
    if (this.restore.choice) return this.restore.close();
    if (this.shown.t.state === "idle") return;
    if (now - this.escaped < 1500) this.cancel();
    else {
      this.escaped = now;
      this.tell("Escape once more stops what runs");
    }
  }

  private cancel(): void {
    this.escaped = -Infinity;
    this.tell("");
    this.shown.post({ type: "cancel" });
  }

  /** Whether the caret is in the first (0) or last (1) line. */
  private onEdge(edge: 0 | 1): boolean {
    const { value, selectionStart, selectionEnd } = this.text;
    if (selectionStart !== selectionEnd) return false;
    return edge === 0 ? !value.slice(0, selectionStart).includes("\n") : !value.slice(selectionEnd).includes("\n");
  }

  private recall(by: number, event: KeyboardEvent): void {
    const at = this.at + by;
    if (at < -1 || at >= this.history.length) return;
    event.preventDefault();
    if (this.at === -1) this.draft = this.text.value;
    this.at = at;
    this.value = at === -1 ? this.draft : (this.history[at] ?? "");
    this.text.setSelectionRange(this.text.value.length, this.text.value.length);
  }

  private typed(): void {
    // Grows with its text; the style sheet says how far.
    this.text.style.height = "auto";
    this.text.style.height = `${this.text.scrollHeight + 2}px`;
    const names = [...this.text.value.matchAll(/(?<![\w@])@(problems|terminal)(?!\w)/g)].map((found) => found[1] ?? "");
    const now = [...new Set(names)].sort().join(" ");
    if (now !== this.named) this.shown.post({ type: "mentions", names: now.split(" ").filter(Boolean) });
    this.named = now;
    this.changed(this.text.value);
  }

  // --- sending --------------------------------------------------------------------------------

  private submit(delivery: Delivery): void {
    const text = this.text.value;
    if (text.trim() === "" && this.pictures.length === 0) return;
    const messageId = newMessage();
    const replaces = this.restore.choice;
    this.unsent.set(messageId, { text, pictures: this.pictures });
    this.shown.post({
      type: "prompt", messageId, text, delivery, along: this.along(),
      ...(replaces?.again ? { replaces: { turnId: replaces.turnId, files: replaces.files } } : {}),
    });
    this.remember(text);
    this.at = -1;
    this.turned.clear();
    this.restore.close();
    this.value = "";
    this.tell("");
    this.havePictures([]);
    this.tellOfUnsent(messageId);
  }

  private remember(text: string): void {
    if (text.trim() === "") return;
    this.history = [text, ...this.history.filter((one) => one !== text)].slice(0, REMEMBERED);
    this.changed(this.text.value);
  }

  private takeBack(messageId: string, text: string): void {
    if (this.text.value.trim() !== "") return this.tell("The input is not empty: send its text first");
    const block = this.shown.t.get(messageId);
    const words = block && promptWords(block);
    this.shown.post({ type: "drop", messageId });
    this.value = words || text;
    this.text.focus();
  }

  // --- what goes along ------------------------------------------------------------------------

  private goes(chip: Chip): boolean {
    return this.turned.get(chip.id) ?? chip.default;
  }

  private along(): Along {
    // What was named a moment ago may not be offered yet.
    const named = this.named.split(" ").filter((name) => name && !this.offered.some((chip) => chip.id === name));
    const left = this.offered.filter((chip) => this.goes(chip)).map((chip) => chip.id);
    return { context: [...left, ...named], pictures: this.pictures };
  }

  /** The page may go out of sight, and is gone then: who keeps the pictures is told of each change. */
  private havePictures(pictures: Picture[]): void {
    if (pictures.length + this.pictures.length > 0) this.shown.post({ type: "pictures", pictures });
    this.pictures = pictures;
    this.drawChips();
  }

  private drawChips(): void {
    const chips = this.offered.map((chip) => this.chip(chip));
    const pictures = this.pictures.map((picture) => this.thumbnail(picture));
    this.chips.hidden = chips.length + pictures.length === 0;
    fill(this.chips, ...pictures, ...chips);
  }

  private chip(chip: Chip): HTMLElement {
    const goes = this.goes(chip);
    const label = oneLine(chip.label);
    const made = h(
      "button",
      {
        type: "button", class: `chip ${goes ? "on" : "off"}`, "aria-pressed": goes ? "true" : "false",
        title: goes ? `${label} goes along: click to take it out` : `Click to send ${label} along`,
      },
      icon(goes ? KINDS[chip.kind] ?? "file" : "add"),
      h("span", {}, ` ${label}`),
    );
    made.addEventListener("click", () => {
      this.turned.set(chip.id, !goes);
      this.drawChips();
      this.changed(this.text.value);
    });
    return made;
  }

  private thumbnail(picture: Picture): HTMLElement {
    const out = iconButton("close", `Take ${picture.name} out`, () => {
      this.havePictures(this.pictures.filter((one) => one !== picture));
    });
    return h("span", { class: "picture" }, h("img", { src: `data:${picture.mimeType};base64,${picture.data}`, alt: picture.name }), out);
  }

  private drawPickers(): void {
    if (this.pickers.contains(document.activeElement)) return;
    const { t } = this.shown;
    const agent = t.options.get("agent") ?? "";
    if (agent !== "plan") this.worker = agent;
    const made = (Object.keys(PICKERS) as (keyof typeof PICKERS)[]).map((id) => this.picker(id));
    const bypass = t.options.get("bypass") === "on" && h(
      "button",
      { type: "button", class: "chip asks", title: "Magy asks nothing in this session: click to have it ask", onclick: () => this.choose("bypass", "off") },
      icon("warning"), " asks nothing",
    );
    fill(this.pickers, ...made, bypass);
  }

  private picker(id: keyof typeof PICKERS): HTMLElement | undefined {
    const { t } = this.shown;
    const choices = t.choices.get(id) ?? [];
    const now = t.options.get(id) ?? "";
    if (choices.length === 0) return undefined;
    const list = choices.includes(now) || now === "" ? choices : [now, ...choices];
    const { name, words } = PICKERS[id];
    const options = list.map((one) => h("option", { value: one, selected: one === now }, words(one)));
    const others = id === "model" && h("option", { value: OTHERS }, "More models…");
    const made = h("select", { "aria-label": name, title: name }, ...options, others);
    made.addEventListener("change", () => {
      if (made.value !== OTHERS) return this.choose(id, made.value);
      made.value = now;
      this.shown.post({ type: "run", command: "selectModel" });
    });
    return made;
  }

  private choose(configId: "agent" | "model" | "review" | "bypass", value: string): void {
    this.shown.post({ type: "option", configId, value });
    // What was chosen is drawn when the server has said so, unless the pickers have the focus.
    this.text.focus();
  }
}

/** In the place of a model: asks the providers which they have. */
const OTHERS = "…";

/** What each picker is called, and how it shows a value. */
const PICKERS = {
  agent: { name: "Agent", words: (value: string) => value },
  review: { name: "What happens to edits (Alt+M)", words: (value: string) => REVIEWS[value]?.label ?? value },
  model: { name: "Model", words: (value: string) => value.replace(/^[^/]*\//, "") },
} as const;

/** An id that no other message has; also where a page is not served safely enough for `randomUUID`. */
function newMessage(): string {
  return `vscode-${[...crypto.getRandomValues(new Uint32Array(4))].map((one) => one.toString(16).padStart(8, "0")).join("")}`;
}

const KINDS: Readonly<Record<string, string>> = {
  selection: "selection", definition: "symbol-method", point: "location", diagnostics: "warning", visible: "eye", open: "files",
  problems: "warning", terminal: "terminal",
};
