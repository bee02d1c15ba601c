/** Going back and forward again, told as a notice; what is out of the conversation is marked. */

import type { RestoredUpdate } from "../../src/wire/generated";
import type { Block } from "./blocks";
import { textOf } from "./blocks";
import type { Transcript } from "./transcript";

export function restored(t: Transcript, news: RestoredUpdate, seq: number): void {
  const undoes = news.undoes ?? "";
  t.restores.set(seq, news);
  const block = t.ensure("notice", `restored ${news.restoreId}`, seq);
  const undone = undoes ? t.get(`restored ${undoes}`) : undefined;
  const redone = undoes !== "" && !undone?.data.redone;
  t.merge(block, {
    severity: "info",
    redone: redone || undefined,
    title: redone ? "Redone" : "Undone",
    description: words(t, news, redone),
  });
  if (news.conversation) marks(t, news, undoes, seq);
}

function words(t: Transcript, news: RestoredUpdate, redone: boolean): string {
  const count = news.changes.length;
  const left = news.conflicts.length;
  const prompt = t.get(news.turnId);
  const what = [
    count > 0 || !news.conversation ? files(count) : "",
    news.conversation ? "the conversation" : "",
  ].filter(Boolean);
  const before = prompt && !redone ? `, back to before “${beginning(prompt)}”` : "";
  return what.join(" and ") + before + (left > 0 ? `; ${files(left)} left alone` : "");
}

function files(count: number): string {
  return `${count} file${count === 1 ? "" : "s"}`;
}

function beginning(prompt: Block): string {
  const text = (prompt.data.content ?? []).map((one) => textOf(one)).join(" ");
  const line = text.trim().split("\n")[0] ?? "";
  return line.length > 60 ? `${line.slice(0, 59)}…` : line;
}

function marks(t: Transcript, news: RestoredUpdate, undoes: string, seq: number): void {
  t.back((block) => {
    if (block.seq && block.seq < seq) {
      if (undoes && block.data.undone === undoes) {
        delete block.data.undone;
        t.touch(block);
      } else if (!undoes && !block.data.undone) t.merge(block, { undone: news.restoreId });
    }
    return !undoes && block.id === news.turnId;
  });
}
