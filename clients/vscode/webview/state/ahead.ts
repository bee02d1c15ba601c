/** What a call that nobody has decided about yet will do, as far as its arguments say. */

import type { Data } from "./blocks";
import { clipped, inputOf } from "./words";

/** Arguments that say what a call is about, the most telling first. */
const TELLING = ["command", "path", "pattern", "query", "url"];
/** Arguments with the old and the new text of an edit. */
const OLD = ["old_text", "old_string"];
const NEW = ["new_text", "new_string", "content", "text"];

/** Whether the server has said nothing of the call but its name and arguments. */
export function isAhead(data: Data): boolean {
  return data.status === "pending" && !data.decision && !data.parts?.length && data.input !== undefined;
}

/** "bash: rm -rf build". */
export function titleAhead(data: Data): string {
  const about = clipped(argument(data, TELLING));
  return [data.name ?? data.title ?? "", about].filter(Boolean).join(": ");
}

/** What stands in the arguments and not in the title: a whole command, the text that goes and comes. */
export function bodyAhead(data: Data): { command: string; removed: string; added: string; path: string } {
  const command = argument(data, ["command"]);
  return {
    command: command === clipped(command) ? "" : command,
    removed: argument(data, OLD),
    added: argument(data, NEW),
    path: argument(data, ["path"]),
  };
}

function argument(data: Data, names: readonly string[]): string {
  const input = inputOf(data);
  const found = names.map((name) => input[name]).find((value) => typeof value === "string");
  return typeof found === "string" ? found : "";
}
