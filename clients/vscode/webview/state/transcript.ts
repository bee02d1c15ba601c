/**
 * The transcript of a session: a fold of the server's updates, without a DOM.
 *
 * Every update may come twice, deltas may be merged or missing, and pages of older entries may be
 * put in front at any time. `take` says which blocks changed since it was called last.
 */

import type { Child, RestoredUpdate, Waiting } from "../../src/wire/generated";
import type { Block, Data, Kind, Question, Spent } from "./blocks";
import { nothing } from "./sums";

export interface Changes {
  /** Blocks to draw again. */
  blocks: ReadonlySet<Block>;
  /** Blocks came, went or moved. */
  order: boolean;
  /** What is not a block changed: state, title, sums, queue, children. */
  frame: boolean;
}

/** Where the entries of an older page go. */
interface Page {
  readonly number: number;
  readonly blocks: Block[];
  /** What this page told of blocks of newer pages, and may tell again. */
  readonly filled: Map<Block, Set<string>>;
}

export class Transcript {
  /** What is shown, in order. */
  blocks: Block[] = [];
  session = "";
  /** The last entry that was applied, and the first one of the pages. */
  seq = 0;
  floor = 1;
  state = "idle";
  progress = "";
  title: string | null = null;
  closed = false;
  options = new Map<string, string>();
  choices = new Map<string, string[]>();
  window = 0;
  context = 0;
  /** The last entry whose usage is part of `spent`. */
  counted = 0;
  spent: Spent = nothing();
  /** By turn: what its requests took. */
  turns = new Map<string, Spent>();
  /** The turn that the entries being read belong to; what came before its name is known. */
  turn = "";
  nameless: Spent = nothing();
  waiting: Waiting[] = [];
  /** Open questions of the session and those below it, by id. */
  open = new Map<string, Question>();
  children = new Map<string, Child>();
  /** Who went back or forward, and when: what is read of older turns is marked, too. */
  readonly restores = new Map<number, RestoredUpdate>();
  /** What became of prompts whose words are not known yet. */
  readonly early = new Map<string, "admitted" | "dropped">();
  /** Whether a page is read: what it tells is not news. */
  paging = false;

  private readonly known = new Map<string, Block>();
  private page: Page | undefined;
  private pages = 0;
  private changed = new Set<Block>();
  private moved = true;
  private framed = true;

  /** Whether entries are read that are older than what is shown. */
  get older(): boolean {
    return this.page !== undefined;
  }

  get(id: string): Block | undefined {
    return this.known.get(id);
  }

  touch(block: Block): void {
    this.changed.add(block);
  }

  frame(): void {
    this.framed = true;
  }

  take(): Changes {
    const changes = { blocks: this.changed, order: this.moved, frame: this.framed };
    this.changed = new Set();
    this.moved = this.framed = false;
    return changes;
  }

  /** The block with that id, made where it belongs if there is none. */
  make(kind: Kind, id: string): Block {
    const known = this.known.get(id);
    if (known) return known;
    const block: Block = {
      kind, id, data: {}, seq: 0, last: 0, streamed: false, page: this.page?.number ?? 0,
    };
    this.known.set(id, block);
    if (this.page) this.page.blocks.push(block);
    // A prompt of another editor may come after what is streamed about it.
    else this.blocks.splice(kind === "user" ? this.streams() : this.blocks.length, 0, block);
    this.moved = true;
    this.touch(block);
    return block;
  }

  /** The same, and notes whether entry `seq` of the log is about it. */
  ensure(kind: Kind, id: string, seq: number): Block {
    const known = this.known.get(id);
    const block = known ?? this.make(kind, id);
    if (seq) {
      block.streamed = false;
      block.seq = block.seq ? Math.min(seq, block.seq) : seq;
      block.last = Math.max(seq, block.last);
    } else if (!known) block.streamed = true;
    return block;
  }

  /**
   * Puts what is not undefined into a block. While older entries are read, what was known before
   * is newer and stays.
   */
  merge(block: Block, data: Data): void {
    const filled = this.page && block.page !== this.page.number ? this.filled(this.page, block) : undefined;
    const into = block.data as Record<string, unknown>;
    for (const [key, value] of Object.entries(data)) {
      if (value === undefined || value === null) continue;
      if (filled && into[key] !== undefined && !filled.has(key)) continue;
      filled?.add(key);
      into[key] = value;
    }
    this.touch(block);
  }

  remove(id: string): void {
    const block = this.known.get(id);
    if (!block) return;
    this.known.delete(id);
    this.changed.delete(block);
    for (const list of this.lists()) {
      const at = list.lastIndexOf(block);
      if (at >= 0) list.splice(at, 1);
    }
    this.moved = true;
  }

  /** Puts a prompt, which enters the conversation now, at its end. */
  moveToEnd(id: string): void {
    const block = this.known.get(id);
    if (!block || block.page !== (this.page?.number ?? 0)) return;
    const list = this.page ? this.page.blocks : this.blocks;
    const at = list.lastIndexOf(block);
    if (at < 0) return;
    list.splice(at, 1);
    const end = this.page ? list.length : this.streams();
    list.splice(end, 0, block);
    if (end !== at) this.moved = true;
  }

  /** The blocks from the last one to the first; ends when `visit` returns true. */
  back(visit: (block: Block) => boolean): void {
    for (const list of this.lists()) {
      for (let at = list.length - 1; at >= 0; at -= 1) {
        const block = list[at];
        if (block && visit(block)) return;
      }
    }
  }

  /** The last blocks before the place where new ones go. */
  backHere(visit: (block: Block) => boolean): void {
    const list = this.page ? this.page.blocks : this.blocks;
    for (let at = list.length - 1; at >= 0; at -= 1) {
      const block = list[at];
      if (block && visit(block)) return;
    }
  }

  /** Takes away what was streamed and never became part of the log. */
  dropStreamed(): void {
    for (const block of [...this.blocks]) if (block.streamed) this.remove(block.id);
  }

  /** Reads older entries by `read`: blocks that it makes stand before all others. */
  inFront(read: () => void): void {
    const page: Page = { number: (this.pages += 1), blocks: [], filled: new Map() };
    this.page = page;
    this.paging = true;
    const { turn, nameless } = this;
    this.turn = "";
    this.nameless = nothing();
    try {
      read();
    } finally {
      this.page = undefined;
      this.paging = false;
      this.turn = turn;
      this.nameless = nameless;
      this.blocks = [...page.blocks, ...this.blocks];
      this.moved = true;
    }
  }

  /**
   * Forgets the oldest turns, so that about `most` are left; returns whether it did. What goes must
   * be complete: an entry that is read again must not need a later one that is shown already.
   */
  forget(most: number): boolean {
    let excess = -most;
    for (const block of this.blocks) if (block.kind === "user") excess += 1;
    let latest = 0;
    let at = 0;
    for (; at < this.blocks.length; at += 1) {
      const block = this.blocks[at];
      if (!block) continue;
      if (block.kind === "user") {
        if (excess <= 0 && block.seq && latest < block.seq) break;
        excess -= 1;
      }
      latest = Math.max(latest, block.last);
    }
    const first = this.blocks[at];
    if (at === 0 || !first) return false;
    for (const block of this.blocks.splice(0, at)) {
      this.known.delete(block.id);
      this.changed.delete(block);
    }
    this.floor = first.seq;
    this.moved = this.framed = true;
    return true;
  }

  private filled(page: Page, block: Block): Set<string> {
    const filled = page.filled.get(block) ?? new Set();
    page.filled.set(block, filled);
    return filled;
  }

  private lists(): Block[][] {
    return this.page ? [this.blocks, this.page.blocks] : [this.blocks];
  }

  /** Where the first block is that is not in the log yet, of those since the last prompt. */
  private streams(): number {
    let end = this.blocks.length;
    for (let at = end - 1; at >= 0; at -= 1) {
      const block = this.blocks[at];
      if (block?.streamed) end = at;
      else if (block?.kind === "user") break;
    }
    return end;
  }
}
