/** A transcript with its input: receives messages, draws at most once a frame. */

import type { FromPage, Kept, Left, ToPage } from "../src/transcript/messages";
import type { AnyUpdate } from "../src/wire/generated";
import { hashOf } from "./input/pictures";
import { Input } from "./input/input";
import type { Block } from "./state/blocks";
import { attached, begins, childChanged, older, update } from "./state/fold";
import { oneLine } from "./state/harmless";
import { answered, changed as questionsChanged } from "./state/questions";
import { Transcript } from "./state/transcript";
import { promptWords } from "./state/words";
import { append, button, fill, h, icon } from "./view/dom";
import { drawHeader, drawSums } from "./view/header";
import type { Connection } from "./view/header";
import { TurnList } from "./view/list";
import { drawReview } from "./view/review";
import type { Shown } from "./view/shown";
import { missing, welcome } from "./view/welcome";

/** Turns that are kept while nobody reads older ones, and how many more before some go. */
const TURNS = 60;
const SLACK = 10;
/** Milliseconds of a frame in which updates are applied; more while very many wait. */
const SLICE = 8;
const FLOOD = { updates: 2_000, slice: 50 };
/** Folds and pictures that are remembered. */
const MOST = 300;
/** Characters of a text that is told as soon as a key has changed it. */
const LONG = 100_000;
const NOTHING: Left = { text: "", sessionId: "" };

export class Page {
  private t = new Transcript();
  private readonly shown: Shown;
  private readonly list: TurnList;
  private readonly input: Input;
  private readonly header = h("header", { class: "bar" });
  private readonly sums = h("div", { class: "bar sums-bar", role: "group", "aria-label": "What this session takes", hidden: true });
  private readonly review = h("div", { class: "review-bar", role: "group", "aria-label": "Changes under review", hidden: true });
  private readonly scroller = h("div", { class: "scroller" });
  private readonly log = h("div", { class: "log", role: "log", "aria-live": "off", "aria-label": "Transcript" });
  private readonly top = h("div", { class: "top" });
  private readonly empty = h("div", { class: "empty" });
  private readonly jump = button("", () => this.list.toEnd(), "jump");
  private readonly polite = h("div", { class: "visually-hidden", "aria-live": "polite", role: "status" });
  private readonly urgent = h("div", { class: "visually-hidden", "aria-live": "assertive", role: "alert" });
  private readonly news: AnyUpdate[] = [];
  private readonly folds = new Map<string, boolean>();
  private readonly pictures = new Map<string, string>();
  private kept: Kept = {};
  /** What the person left, as the extension knows it. Undefined until it has said that: what a page that is only just
   * there would tell of itself would take the place of what was written before. */
  private left: string | undefined;
  /** The prompt of an undone turn that was put into the input; `undone`: the transcript has shown it so. */
  private offered: { turnId: string; words: string; undone: boolean } | undefined;
  private about = { parent: "", folder: "" };
  private connection: Connection = { state: "starting", message: "" };
  private askedOlder = false;
  private frame = 0;
  private saving = 0;

  constructor(
    body: HTMLElement,
    private readonly post: (message: FromPage) => void,
    private readonly keep: (kept: Kept) => void,
  ) {
    this.shown = this.makeShown();
    this.input = new Input(this.shown, (text) => {
      if (text.length < LONG) this.leave();
      this.save();
    });
    this.list = new TurnList(this.scroller, this.log, this.shown);
    this.list.onFollow = (following) => {
      this.jump.hidden = following;
      this.save();
    };
    this.list.onTop = () => this.askOlder();
    append(this.jump, [icon("arrow-down"), " Latest"]);
    this.jump.hidden = true;
    append(this.scroller, [this.top, this.empty, this.log]);
    const main = h("main", {}, this.header, this.sums, this.scroller, h("div", { class: "jump-place" }, this.jump), this.review, this.input.element);
    body.append(main, this.polite, this.urgent);
    this.listen();
  }

  /** Begins with what a page before this one left behind. */
  start(kept: Kept): void {
    this.kept = kept;
    this.input.history = kept.history ?? [];
    this.input.toggled = kept.toggled ?? [];
    for (const [id, folded] of kept.folds ?? []) this.folds.set(id, folded);
    this.post({ type: "ready", kept });
    this.draw();
  }

  receive(message: ToPage): void {
    switch (message.type) {
      case "attached":
        return this.attach(message);
      case "none":
        return this.reset("");
      case "options":
        if (this.t.session === "") begins(this.t, message.options);
        return this.soon();
      case "failed":
        this.reset("");
        return this.input.tell(message.message);
      case "updates":
        if (message.sessionId !== this.t.session) return;
        for (const one of message.updates) this.news.push(one);
        return this.soon();
      case "children":
        for (const child of message.children) childChanged(this.t, child);
        return this.soon();
      case "interactions":
        this.flush();
        questionsChanged(this.t, message.news);
        return this.soon();
      case "older":
        return this.gotOlder(message);
      case "olderFailed":
        this.askedOlder = false;
        return this.input.tell(message.message);
      case "connection":
        return this.connected(message);
      case "review":
        return drawReview(this.shown, this.review, message);
      default:
        return this.aside(message);
    }
  }

  /** What is about the input and its cards. */
  private aside(message: ToPage): void {
    switch (message.type) {
      case "completions":
        return this.input.completer.arrived(message.id, message.prefix, message.items);
      case "chips":
        return this.input.offer(message.chips);
      case "pictures":
        return this.input.addPictures(message.pictures);
      case "accepted":
        return this.input.accepted(message.messageId);
      case "refused":
        return this.input.refused(message.messageId, message.text, message.message);
      case "answered":
        answered(this.t, message.interactionId, message.outcome, message.scope, message.reason);
        this.input.tell("");
        return this.soon();
      case "preview":
        return this.input.restore.arrived(message.turnId, message.preview, message.message);
      case "restored":
        return this.restored(message);
      case "codeDone":
        return this.codeDone(message);
      case "insert":
        return this.input.insert(message.text);
      case "left":
        return this.goOn(message.left);
      case "offer":
        return this.offer(message.text, message.turnId);
      case "focus":
        return this.input.focus();
      case "say":
        return this.input.tell(message.message);
      default:
        return; // the extension may be newer than this page
    }
  }

  // --- the session ------------------------------------------------------------------------------

  private attach(message: Extract<ToPage, { type: "attached" }>): void {
    if (!message.resumed || message.sessionId !== this.t.session) this.reset(message.sessionId);
    this.flush();
    this.about = message;
    attached(this.t, message.sessionId, message.page, message.resumed);
    this.draw();
    const { anchor } = this.kept;
    if (!message.resumed && this.kept.sessionId === message.sessionId && anchor) this.list.toAnchor(anchor);
    this.kept = {};
    this.save();
  }

  /** As the person left a page before this one. What was typed here already goes on from that. */
  private goOn(left: Left | undefined): void {
    this.left = JSON.stringify(left ?? NOTHING);
    if (left && this.t.session === "") this.kept = { ...this.kept, sessionId: left.sessionId, anchor: left.anchor };
    if (left?.text) this.input.value = left.text + this.input.value;
    else this.leave();
  }

  private reset(sessionId: string): void {
    const { children } = this.t;
    this.news.length = 0;
    this.t = new Transcript();
    this.t.session = sessionId;
    for (const [id, child] of children) this.t.children.set(id, child);
    this.list.clear();
    this.askedOlder = false;
    this.draw();
  }

  private askOlder(): void {
    if (this.askedOlder || this.t.floor <= 1) return;
    this.askedOlder = true;
    this.post({ type: "older", before: this.t.floor });
  }

  private gotOlder(message: Extract<ToPage, { type: "older" }>): void {
    this.askedOlder = false;
    if (message.sessionId !== this.t.session || message.before !== this.t.floor) return;
    this.flush();
    older(this.t, message.page);
    this.draw();
  }

  private connected(message: Connection): void {
    // What was said of a server is not true of the next one.
    if (gone(this.connection) && !gone(message)) this.input.tell("");
    this.connection = message;
    document.body.dataset.server = message.state;
    if (message.state === "dead" || message.state === "stopped") {
      this.flush();
      this.t.dropStreamed();
      this.t.state = "idle";
    }
    if (message.state === "dead") this.urgent.textContent = message.message;
    this.t.frame();
    this.soon();
  }

  private restored(message: Extract<ToPage, { type: "restored" }>): void {
    const left = message.result?.files.filter((file) => file.conflict).length ?? 0;
    this.input.tell(message.message ?? (left > 0 ? `${left} file${left === 1 ? " was" : "s were"} left alone` : ""));
    if (!message.result?.prompt) return;
    this.offer(message.result.prompt, message.turnId);
  }

  /** Puts what was said into the input, to be said otherwise; what is written there already stays. */
  private offer(prompt: string, turnId: string): void {
    if (prompt === "" || this.input.value.trim() !== "") return;
    // The server also names what went along.
    const block = this.t.get(turnId);
    const words = block ? promptWords(block) : prompt;
    this.offered = { turnId, words, undone: block?.data.undone !== undefined };
    this.input.value = words;
    this.input.focus();
  }

  /** Takes an offered prompt back when its turn counts again, unless it was written on. */
  private takeOfferBack(): void {
    const { offered } = this;
    if (!offered) return;
    if (this.t.get(offered.turnId)?.data.undone !== undefined) offered.undone = true;
    else if (offered.undone) {
      this.offered = undefined;
      if (this.input.value === offered.words) this.input.value = "";
    }
  }

  private codeDone(message: Extract<ToPage, { type: "codeDone" }>): void {
    const status = this.log.querySelector<HTMLElement>(`[data-code="${message.id}"]`);
    if (!status) return;
    status.textContent = message.message;
    status.classList.toggle("bad", message.failed);
  }

  // --- drawing ----------------------------------------------------------------------------------

  private soon(): void {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.apply(performance.now() + (this.news.length > FLOOD.updates ? FLOOD.slice : SLICE));
      this.draw();
    });
  }

  /** Applies what waits, as much as a frame has room for; soon the rest. */
  private apply(until: number): void {
    const before = { state: this.t.state, open: new Set(this.t.open.keys()) };
    let at = 0;
    for (; at < this.news.length; at += 1) {
      if (at % 50 === 0 && performance.now() > until) break;
      const one = this.news[at];
      if (one) update(this.t, one);
    }
    this.news.splice(0, at);
    this.announce(before);
    if (this.news.length > 0) this.soon();
  }

  private flush(): void {
    if (this.news.length > 0) this.apply(Infinity);
  }

  private draw(): void {
    if (this.list.follows && this.t.blocks.length > TURNS) this.forgetOld();
    const { blocks, order, frame } = this.t.take();
    this.list.patch(this.t.blocks, blocks, order);
    this.takeOfferBack();
    if (frame || order) {
      this.list.sums(this.t.turns, this.t.turn);
      drawHeader(this.shown, this.header, this.about, this.connection);
      drawSums(this.shown, this.sums);
      this.input.update();
      this.drawEnds();
    }
    this.list.stay();
  }

  private forgetOld(): void {
    let turns = 0;
    for (const block of this.t.blocks) if (block.kind === "user") turns += 1;
    if (turns > TURNS + SLACK) this.t.forget(TURNS);
  }

  private drawEnds(): void {
    const more = this.t.floor > 1 && this.t.session !== "";
    if (more !== this.top.childElementCount > 0) {
      fill(this.top, more && button("Show older turns", () => this.askOlder(), "secondary"));
    }
    this.empty.hidden = this.t.blocks.length > 0;
    const lack = missing(this.shown, this.connection);
    const said = `${lack} ${lack ? this.connection.message : ""}`;
    if (this.empty.hidden || this.empty.dataset.said === said) return;
    this.empty.dataset.said = said;
    fill(this.empty, ...welcome(this.shown, this.connection));
  }

  /** Says the end of a turn, and a question, to those who listen. */
  private announce(before: { state: string; open: ReadonlySet<string> }): void {
    if (before.state !== "idle" && this.t.state === "idle") {
      let last = "";
      this.t.back((block) => {
        if (block.kind === "notice" && block.data.severity === "error") last = block.data.description ?? "";
        return block.kind === "user" || block.kind === "agent";
      });
      this.polite.textContent = last ? `The turn failed: ${oneLine(last)}` : "The turn has ended.";
    }
    for (const [id, question] of this.t.open) {
      if (!before.open.has(id)) this.urgent.textContent = `Magy asks: ${oneLine(question.title)}`;
    }
  }

  // --- what a person does -----------------------------------------------------------------------

  private makeShown(): Shown {
    // The transcript is another one after each change of session.
    const current = () => this.t;
    return {
      get t() {
        return current();
      },
      folds: this.folds,
      pictures: this.pictures,
      post: (message) => this.send(message),
      again: (block) => this.again(block),
      say: (text) => {
        this.polite.textContent = text;
        this.input.tell(text);
      },
      ask: (text) => this.input.ask(text),
      edit: (block) => this.input.edit(block),
      back: (block) => this.input.restore.ask({ turnId: block.id, again: false }),
    };
  }

  private send(message: FromPage): void {
    if (message.type === "prompt") {
      this.list.toEnd();
      for (const picture of message.along.pictures) {
        void hashOf(picture).then((hash) => {
          bounded(this.pictures, hash, `data:${picture.mimeType};base64,${picture.data}`, 20);
        });
      }
    }
    this.post(message);
  }

  private again(block: Block): void {
    while (this.folds.size > MOST) this.folds.delete(this.folds.keys().next().value ?? "");
    this.t.touch(block);
    this.draw();
    this.save();
  }

  private listen(): void {
    document.addEventListener("keydown", (event) => {
      if (!event.altKey || event.ctrlKey || event.metaKey) return;
      if (event.key === "ArrowUp") this.list.step(-1);
      else if (event.key === "ArrowDown") this.list.step(1);
      else if (event.code === "KeyQ") this.toQuestion();
      else if (event.code === "KeyM") this.input.nextMode();
      else return;
      event.preventDefault();
    });
    this.scroller.addEventListener("scroll", () => this.save(), { passive: true });
    window.addEventListener("blur", () => this.saving && this.saveNow());
    window.addEventListener("focus", () => document.activeElement === document.body && this.input.focus());
  }

  /** Goes to the question that has waited longest. */
  private toQuestion(): void {
    const [id] = this.t.open.keys();
    const block = id === undefined ? undefined : this.t.get(id);
    if (block) this.list.reveal(block);
  }

  /** Keeps, soon, what a page after this one begins with. */
  private save(): void {
    this.saving ||= window.setTimeout(() => this.saveNow(), 200);
  }

  private saveNow(): void {
    clearTimeout(this.saving);
    this.saving = 0;
    this.leave();
    const { sessionId, anchor } = this.now();
    const { history, toggled } = this.input;
    this.keep({ sessionId, history, folds: [...this.folds], toggled, anchor });
  }

  /** Tells the extension what would be lost with the page, which may be gone without a word. */
  private leave(): void {
    if (this.left === undefined) return;
    const left = this.now();
    const said = JSON.stringify(left);
    if (said !== this.left) this.post({ type: "left", left });
    this.left = said;
  }

  private now(): Left {
    // Until the session is there, the place is the one that the page goes back to.
    const waits = this.t.session === "" && this.kept.sessionId !== undefined;
    const sessionId = (waits && this.kept.sessionId) || this.t.session;
    return { text: this.input.value, sessionId, anchor: waits ? this.kept.anchor : this.list.anchor() };
  }
}

function bounded<V>(map: Map<string, V>, key: string, value: V, most: number): void {
  map.set(key, value);
  while (map.size > most) map.delete(map.keys().next().value ?? "");
}

function gone({ state }: Connection): boolean {
  return state === "stopped" || state === "dead" || state === "missing";
}
