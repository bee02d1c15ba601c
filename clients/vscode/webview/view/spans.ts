/** Sentences of the server, in which `code` stands between backticks. */

import { harmless } from "../state/harmless";
import { h } from "./dom";
import type { Child } from "./dom";

export function withCode(text: string): Child[] {
  return harmless(text)
    .split(/(`[^`\n]+`)/)
    .map((part) => (/^`[^`\n]+`$/.test(part) ? h("code", {}, part.slice(1, -1)) : part));
}
