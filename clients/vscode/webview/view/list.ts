/**
 * The turns of a transcript on the screen. Only turns near the view have their blocks drawn; the
 * others keep their height. So a session of thousands of turns costs what a short one costs.
 */

import type { Block, Spent } from "../state/blocks";
import { words } from "../state/sums";
import { h } from "./dom";
import type { Shown } from "./shown";
import { viewOf } from "./views";
import type { View } from "./views";

/** Pixels that a turn takes until it was drawn. */
const GUESS = 120;
/** How far from the end one is still reading along. */
const NEAR = 32;

interface Turn {
  readonly element: HTMLElement;
  blocks: Block[];
  views: Map<Block, View>;
  foot: HTMLElement;
  drawn: boolean;
}

export class TurnList {
  private turns: Turn[] = [];
  private readonly byElement = new Map<Element, Turn>();
  private readonly owner = new Map<Block, Turn>();
  private readonly watch: IntersectionObserver;
  private following = true;
  /** Where the reader was seen last, and how long the page was then. */
  private seen = { top: 0, length: 0 };

  /** Called when the reader comes to or leaves the end, and when the top is seen. */
  onFollow: (following: boolean) => void = () => undefined;
  onTop: () => void = () => undefined;

  constructor(
    private readonly scroller: HTMLElement,
    private readonly list: HTMLElement,
    private readonly shown: Shown,
  ) {
    this.watch = new IntersectionObserver((seen) => this.crossed(seen), { root: scroller, rootMargin: "1200px 0px" });
    scroller.addEventListener("scroll", () => this.scrolled(), { passive: true });
    new ResizeObserver(() => this.stay()).observe(scroller);
  }

  get follows(): boolean {
    return this.following;
  }

  /** Turns that are drawn and all turns, for those who measure. */
  get size(): { drawn: number; turns: number } {
    return { drawn: this.turns.filter((turn) => turn.drawn).length, turns: this.turns.length };
  }

  /** Takes over what changed. */
  patch(blocks: readonly Block[], changed: ReadonlySet<Block>, order: boolean): void {
    if (order) this.arrange(blocks);
    for (const block of changed) {
      const turn = this.owner.get(block);
      if (turn?.drawn) turn.views.get(block)?.update();
    }
  }

  /** What turns took stands at their ends. */
  sums(turns: ReadonlyMap<string, Spent>, running: string): void {
    for (const turn of this.turns) {
      const id = turn.blocks[0]?.id ?? "";
      const spent = turns.get(id);
      const took = spent?.from && spent.to && spent.to - spent.from >= 1 ? `${seconds(spent.to - spent.from)}` : "";
      const said = spent && id !== running ? [...words(spent), took].filter(Boolean).join(" · ") : "";
      if (turn.foot.textContent !== said) turn.foot.textContent = said;
    }
  }

  clear(): void {
    for (const turn of this.turns) this.drop(turn);
    this.turns = [];
    this.list.replaceChildren();
    this.following = true;
    this.onFollow(true);
  }

  toEnd(): void {
    this.following = true;
    this.stay();
    this.onFollow(true);
  }

  /** Moves to the next (1) or previous (-1) prompt. */
  step(by: 1 | -1): void {
    const top = this.scroller.getBoundingClientRect().top;
    const places = this.turns.map((turn) => turn.element.getBoundingClientRect().top - top);
    const at = by > 0 ? places.findIndex((place) => place > 8) : places.findLastIndex((place) => place < -8);
    const turn = this.turns[at];
    if (!turn) return by > 0 ? this.toEnd() : undefined;
    this.following = false;
    turn.element.scrollIntoView({ block: "start" });
    turn.element.focus({ preventScroll: true });
  }

  /** Shows a block, and puts the focus there. */
  reveal(block: Block): void {
    const turn = this.owner.get(block);
    if (!turn) return;
    this.draw(turn);
    const element = turn.views.get(block)?.element;
    element?.scrollIntoView({ block: "nearest" });
    element?.querySelector<HTMLElement>("[tabindex], button")?.focus({ preventScroll: true });
  }

  /** Where the reader is: the first turn in view, and how far it is above. */
  anchor(): { id: string; offset: number } | undefined {
    if (this.following) return undefined;
    const top = this.scroller.getBoundingClientRect().top;
    for (const turn of this.turns) {
      const box = turn.element.getBoundingClientRect();
      if (box.bottom > top) return { id: turn.blocks[0]?.id ?? "", offset: box.top - top };
    }
    return undefined;
  }

  /** Goes back to an anchor; false if its turn is not here. */
  toAnchor(anchor: { id: string; offset: number }): boolean {
    const turn = this.turns.find((one) => one.blocks[0]?.id === anchor.id);
    if (!turn) return false;
    this.draw(turn);
    this.following = false;
    turn.element.scrollIntoView({ block: "start" });
    this.scroller.scrollTop -= anchor.offset;
    this.onFollow(false);
    return true;
  }

  // --- what is where ------------------------------------------------------------------------------

  private arrange(blocks: readonly Block[]): void {
    const groups: Block[][] = [];
    for (const block of blocks) {
      const last = groups[groups.length - 1];
      if (!last || (block.kind === "user" && block.data.queue !== "waiting")) groups.push([block]);
      else last.push(block);
    }
    const known = new Map(this.turns.map((turn) => [turn.blocks[0], turn]));
    const turns = groups.map((group) => {
      const turn = (group[0] && known.get(group[0])) ?? this.make();
      known.delete(group[0]);
      this.own(turn, group);
      return turn;
    });
    for (const gone of known.values()) this.drop(gone);
    const before = this.top();
    this.place(turns);
    this.turns = turns;
    this.keep(before);
  }

  private own(turn: Turn, group: Block[]): void {
    const same = turn.blocks.length === group.length && group.every((block, at) => turn.blocks[at] === block);
    if (same) return;
    const now = new Set(group);
    for (const block of turn.blocks) {
      if (now.has(block)) continue;
      if (this.owner.get(block) === turn) this.owner.delete(block);
      turn.views.get(block)?.element.remove();
      turn.views.delete(block);
    }
    turn.blocks = group;
    for (const block of group) this.owner.set(block, turn);
    if (turn.drawn) this.fill(turn);
  }

  private make(): Turn {
    const element = h("section", { class: "turn", tabindex: -1, "aria-label": "Turn" });
    const foot = h("div", { class: "turn-foot" });
    const turn: Turn = { element, blocks: [], views: new Map(), foot, drawn: false };
    element.style.minHeight = `${GUESS}px`;
    this.byElement.set(element, turn);
    this.watch.observe(element);
    return turn;
  }

  private drop(turn: Turn): void {
    this.watch.unobserve(turn.element);
    this.byElement.delete(turn.element);
    for (const block of turn.blocks) if (this.owner.get(block) === turn) this.owner.delete(block);
    turn.element.remove();
  }

  private place(turns: readonly Turn[]): void {
    let next: Element | null = this.list.firstElementChild;
    for (const turn of turns) {
      if (next === turn.element) next = next.nextElementSibling;
      else this.list.insertBefore(turn.element, next);
    }
    // The last one is what is read along; it never waits to be seen.
    const last = turns[turns.length - 1];
    if (last && this.following) this.draw(last);
  }

  // --- drawing what is near -----------------------------------------------------------------------

  private crossed(seen: readonly IntersectionObserverEntry[]): void {
    let drawn = false;
    for (const one of seen) {
      const turn = this.byElement.get(one.target);
      if (!turn) continue;
      if (one.isIntersecting) drawn = this.draw(turn) || drawn;
      else this.park(turn, one.boundingClientRect.height);
    }
    if (drawn) this.stay();
  }

  private draw(turn: Turn): boolean {
    if (turn.drawn) return false;
    turn.drawn = true;
    turn.element.style.minHeight = "";
    this.fill(turn);
    return true;
  }

  private fill(turn: Turn): void {
    let next: Element | null = turn.element.firstElementChild;
    for (const block of turn.blocks) {
      let view = turn.views.get(block);
      if (!view) {
        view = viewOf(this.shown, block);
        turn.views.set(block, view);
        view.update();
      }
      if (next === view.element) next = next.nextElementSibling;
      else turn.element.insertBefore(view.element, next);
    }
    if (turn.element.lastElementChild !== turn.foot) turn.element.append(turn.foot);
    const first = turn.blocks[0];
    const words = first?.kind === "user" ? (first.data.content?.find((one) => one.type === "text")?.text ?? "") : "";
    turn.element.setAttribute("aria-label", words ? `Turn: ${words.slice(0, 80)}` : "Turn");
  }

  /** Takes the blocks of a turn that is far away out of the page. */
  private park(turn: Turn, height: number): void {
    const last = this.turns[this.turns.length - 1] === turn;
    if (!turn.drawn || last || turn.element.contains(document.activeElement)) return;
    // Asking the element would have the whole page laid out, for each turn.
    turn.element.style.minHeight = `${height}px`;
    turn.drawn = false;
    turn.views.clear();
    turn.element.replaceChildren();
  }

  // --- scrolling ----------------------------------------------------------------------------------

  private scrolled(): void {
    const { scrollTop, clientHeight, scrollHeight } = this.scroller;
    const following = scrollTop + clientHeight >= scrollHeight - NEAR;
    const left = scrollTop < this.seen.top && scrollHeight >= this.seen.length;
    this.seen = { top: scrollTop, length: scrollHeight };
    // One leaves the end upwards. Else the end moved away: more came, or what is below the page took room of it.
    if (this.following && !following && !left) return this.stay();
    if (following !== this.following) {
      this.following = following;
      this.onFollow(following);
    }
    if (scrollTop < 400 && !following) this.onTop();
  }

  /** Keeps the end in view for those who read along. It lays the page out: once a frame is enough. */
  stay(): void {
    if (!this.following) return;
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.seen = { top: this.scroller.scrollTop, length: this.scroller.scrollHeight };
  }

  /** A turn in view, to keep where it is while others come in front. */
  private top(): { turn: Turn; at: number } | undefined {
    if (this.following) return undefined;
    const top = this.scroller.getBoundingClientRect().top;
    for (const turn of this.turns) {
      const box = turn.element.getBoundingClientRect();
      if (box.bottom > top) return { turn, at: box.top };
    }
    return undefined;
  }

  private keep(before: { turn: Turn; at: number } | undefined): void {
    if (!before?.turn.element.isConnected) return;
    const moved = before.turn.element.getBoundingClientRect().top - before.at;
    if (Math.abs(moved) > 1) this.scroller.scrollTop += moved;
  }
}

function seconds(took: number): string {
  if (took < 60) return `${Math.round(took)} s`;
  return `${Math.floor(took / 60)} min ${Math.round(took % 60)} s`;
}
