/** What drawing a block needs besides the block. */

import type { FromPage } from "../../src/transcript/messages";
import type { Block } from "../state/blocks";
import type { Transcript } from "../state/transcript";

export interface Shown {
  readonly t: Transcript;
  /** What a person folded or unfolded, by block. */
  readonly folds: Map<string, boolean>;
  /** Pictures that were sent from here: their hash -> a data URI. */
  readonly pictures: Map<string, string>;
  post(message: FromPage): void;
  /** Draws a block again. */
  again(block: Block): void;
  /** Says something to those who listen. */
  say(text: string): void;
  /** Sends words as a prompt of their own. */
  ask(text: string): void;
  /** Puts an earlier prompt into the input, to be sent in its place. */
  edit(block: Block): void;
  /** Previews going back to before a prompt. */
  back(block: Block): void;
}

/** Whether a block is folded: as the person chose, else as usual. */
export function folded(shown: Shown, block: Block, usual: boolean): boolean {
  return shown.folds.get(block.id) ?? usual;
}

export function fold(shown: Shown, block: Block, folded: boolean): void {
  shown.folds.delete(block.id);
  shown.folds.set(block.id, folded);
  shown.again(block);
}
