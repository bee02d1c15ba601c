import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { namedFile, isEdit } from "../../src/transcript/fences";
import { special } from "../../src/transcript/special";
import { meant } from "../../src/transcript/targets";
import type { AnyUpdate, EventsResult, SubscribeResult } from "../../src/wire/generated";
import { attached, childChanged, older, update } from "../../webview/state/fold";
import { changed as interactions } from "../../webview/state/questions";
import { harmless } from "../../webview/state/harmless";
import { blockText } from "./blockText";
import { Transcript } from "../../webview/state/transcript";

// npm runs this in clients/vscode, and node also elsewhere.
const ROOT = [resolve("../.."), resolve(".")].find((one) => existsSync(join(one, "tests/clients/pictures")));
const PICTURES = join(ROOT ?? "", "tests/clients/pictures");

interface Line {
  result?: SubscribeResult;
  method?: string;
  params?: never;
}

/** A recorded session; each piece of news `times` times, as every update may come twice. */
function recorded(name: string, times = 1): Transcript {
  const lines = readFileSync(join(PICTURES, `${name}.jsonl`), "utf8").trim().split("\n");
  const [first, ...rest] = lines.map((line) => JSON.parse(line) as Line);
  const t = new Transcript();
  attached(t, "s-1", first?.result as SubscribeResult, false);
  for (const { method, params } of rest) {
    for (let time = 0; time < times; time += 1) tell(t, method, params as never);
  }
  return t;
}

function tell(t: Transcript, method: string | undefined, params: never): void {
  if (method === "magy/session/update") update(t, (params as { update: AnyUpdate }).update);
  if (method === "magy/interaction/changed") interactions(t, params);
  if (method === "magy/child/changed") childChanged(t, (params as { child: never }).child);
}

function shown(t: Transcript): string[][] {
  return t.blocks.map((block) => [block.kind, blockText(t, block).trim()]).filter(([, text]) => text);
}

for (const file of readdirSync(PICTURES).filter((one) => one.endsWith(".jsonl"))) {
  const name = file.replace(".jsonl", "");
  test(`the blocks of ${name} are those of Emacs`, () => {
    const wanted: unknown = JSON.parse(readFileSync(join(PICTURES, `${name}.blocks.json`), "utf8"));
    assert.deepEqual(shown(recorded(name)), wanted);
  });
}

test("a session that is read from its log in pages is what it was live", () => {
  for (const name of ["tools", "agents", "restore", "plan"]) {
    const live = recorded(name);
    const { events, summary } = logOf(name);
    for (const size of [1, 3, 7, 1000]) {
      const t = new Transcript();
      const newest = events.slice(-size);
      attached(t, "s-1", { summary, headSeq: events.at(-1)?.seq ?? 0, floorSeq: newest[0]?.seq ?? 1, events: newest, more: false }, false);
      for (const child of live.children.values()) childChanged(t, child);
      for (let end = events.length - size; end > 0; end -= size) {
        const page = { events: events.slice(Math.max(0, end - size), end) } as EventsResult;
        older(t, page);
      }
      // A prompt that waited may stand where it came if the page ends before it was admitted.
      const order = size > 7 ? (all: string[][]) => all : (all: string[][]) => all.map((one) => one.join(": ")).sort();
      assert.deepEqual(order(shown(t)), order(shown(live)), `${name} in pages of ${size}`);
    }
  }
});

/** The entries of a recorded session, as pages of its log have them. */
function logOf(name: string): Pick<SubscribeResult, "events" | "summary"> {
  const lines = readFileSync(join(PICTURES, `${name}.jsonl`), "utf8").trim().split("\n");
  const [first, ...rest] = lines.map((line) => JSON.parse(line) as Line);
  const result = first?.result as SubscribeResult;
  const events = [...result.events];
  for (const { method, params } of rest) {
    if (method !== "magy/session/update") continue;
    const news = (params as unknown as { update: AnyUpdate }).update;
    const stamp = news._meta?.magy;
    if (stamp?.seq) events.push({ seq: stamp.seq, at: stamp.at ?? 0, update: news });
  }
  return { events, summary: { ...result.summary, interactions: [] } };
}

test("a result that no graph took is shown, and one whose graph is void", () => {
  const t = recorded("graph");
  const results = () => t.blocks.filter((one) => one.kind === "mail" && blockText(t, one) !== "").length;
  assert.equal(results(), 0);
  const sender = "s-1/5.0.north.2";
  const mail = { id: "01R", sender, agent: "explore", name: "north", to: "s-1", payload: "text", delivery: "queue" };
  const report = { status: "completed", usage: {}, seconds: 0 };
  update(t, { sessionUpdate: "_magy_mail", messageId: "01R", mail, content: [], report } as never);
  update(t, { sessionUpdate: "_magy_queue", added: "01R", delivery: "queue" } as never);
  assert.equal(results(), 1, "it waits: the graph was cancelled");
  t.take();
  update(t, { sessionUpdate: "tool_call_update", toolCallId: "5.0", status: "cancelled" } as never);
  assert.equal(results(), 4);
  assert.equal([...t.take().blocks].filter((one) => one.kind === "mail").length, 4, "they are drawn anew");
});

test("entries that come twice, and deltas that are missing, change nothing", () => {
  for (const name of ["tools", "restore", "thinking", "question"]) {
    const twice = recorded(name).blocks.length;
    const t = new Transcript();
    const { events, summary } = logOf(name);
    attached(t, "s-1", { summary, headSeq: 0, floorSeq: 1, events: [], more: false }, false);
    for (const event of [...events, ...events.slice(-3)]) {
      update(t, { ...event.update, _meta: { magy: { ...event.update._meta?.magy, seq: event.seq, at: event.at } } } as AnyUpdate);
    }
    assert.deepEqual(shown(t), shown(recorded(name)), name);
    assert.equal(t.blocks.length, twice);
  }
});

test("what is not an update changes nothing", () => {
  const t = recorded("tools");
  const before = shown(t);
  const error = console.error;
  console.error = () => undefined;
  try {
    for (const news of [
      { sessionUpdate: "_from_the_future", content: { x: 1 } },
      { sessionUpdate: "plan_update" },
      { sessionUpdate: "_magy_mail", mail: null },
      {},
    ]) {
      update(t, news as AnyUpdate);
    }
  } finally {
    console.error = error;
  }
  assert.deepEqual(shown(t), before);
});

test("text that would steer a screen is shown as what it is", () => {
  assert.equal(harmless("a\x1b[31mred\x1b[0m\x1b]0;title\x07\r\nb\u202Ec\x07"), "ared\nb<U+202E>c<U+0007>");
  assert.equal(harmless("𝒳 \ud800"), "𝒳 <U+D800>");
});

test("a link opens a web page or a file, and nothing else", () => {
  assert.deepEqual(meant("https://example.org/a"), { web: "https://example.org/a" });
  assert.deepEqual(meant("src/app.py:12"), { path: "src/app.py", line: 12 });
  assert.deepEqual(meant("src/app.py#L3-L9"), { path: "src/app.py", line: 3 });
  assert.deepEqual(meant("file:///a%20b/c.py#L2"), { path: "/a b/c.py", line: 2 });
  for (const bad of ["command:workbench.action.quit", "vscode:extension/x", "javascript:alert(1)", "//host/share", "data:text/html,x", ""]) {
    assert.equal(meant(bad), undefined, bad);
  }
});

test("a fence may name its file, or hold an edit", () => {
  assert.equal(namedFile("python src/app.py"), "src/app.py");
  assert.equal(namedFile("ts:src/a.ts"), "src/a.ts");
  assert.equal(namedFile('js title="a.js"'), "a.js");
  assert.equal(namedFile("python"), undefined);
  assert.ok(isEdit("--- a/x\n+++ b/x\n@@ -1 +1 @@\n", ""));
  assert.ok(isEdit("<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE", ""));
  assert.ok(!isEdit("print('--- no edit')", "python"));
});

test("some prompts are for this client", () => {
  assert.deepEqual(special(" @clear "), { do: "new" });
  assert.deepEqual(special("@compact the plan"), { do: "compact", focus: "the plan" });
  assert.deepEqual(special("@spawn explore look\naround"), { do: "spawn", agent: "explore", task: "look\naround", worktree: false });
  assert.deepEqual(special("@spawn general --worktree mend it"), { do: "spawn", agent: "general", task: "mend it", worktree: true });
  assert.equal(special("what does @clear do?"), undefined);
});
