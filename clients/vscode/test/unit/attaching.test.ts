import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConnectionState } from "../../src/connection";
import { Subscriptions, type Wire } from "../../src/sessions/subscriptions";
import type { AnyUpdate, SubscribeResult } from "../../src/wire/generated";
import { attached, update } from "../../webview/state/fold";
import { Transcript } from "../../webview/state/transcript";

/** The entries of a session with one prompt: the updates of each. */
const ENTRIES = [
  [{ sessionUpdate: "session_info_update", title: null }],
  [
    { sessionUpdate: "user_message", messageId: "p1", content: [{ type: "text", text: "tidy" }] },
    { sessionUpdate: "_magy_queue", added: "p1", delivery: "steer" },
  ],
  [
    { sessionUpdate: "_magy_queue", admitted: ["p1"] },
    { sessionUpdate: "state_update", state: "running", _meta: { magy: { turnId: "p1", opens: true } } },
  ],
  [{ sessionUpdate: "agent_message", messageId: "3", content: [{ type: "text", text: "Done." }] }],
  [{ sessionUpdate: "state_update", state: "idle", stopReason: "end_turn", _meta: { magy: { turnId: "p1" } } }],
] as unknown as AnyUpdate[][];
const DELTA = { sessionUpdate: "agent_message_chunk", messageId: "3", content: { type: "text", text: "Do" } } as AnyUpdate;

interface Request {
  from: { seq?: number };
  page?: SubscribeResult;
  resolve(page: SubscribeResult): void;
  reject(error: Error): void;
}

/**
 * A server of one session, step by step. As docs/protocol.md says: an answer has all that was told
 * before it, and what is told after it is new.
 */
class Server {
  state: ConnectionState = "running";
  private requests: Request[] = [];
  /** The last entry that was told; undefined: nothing is told at the moment. */
  private told: number | undefined;
  private streamed = false;
  private hear: (params: { sessionId: string; update: AnyUpdate }) => void = () => undefined;
  private become: (state: ConnectionState) => void = () => undefined;

  /** `head`: how many entries are there from the beginning. */
  constructor(private head: number) {}

  wire(): Wire {
    const state = () => this.state;
    return {
      get state() {
        return state();
      },
      request: (method: string, { from }: { from: { seq?: number } }) =>
        method.endsWith("unsubscribe")
          ? Promise.resolve(null)
          : new Promise((resolve, reject) => this.requests.push({ from, resolve, reject })),
      on: (_: string, hear: never) => (this.hear = hear),
      onDidChangeState: (become: never) => (this.become = become),
    } as unknown as Wire;
  }

  /** What may happen next. */
  steps(): (() => void)[] {
    const [first] = this.requests;
    const { told } = this;
    const steps: (() => void)[] = [];
    if (told !== undefined && told < this.head) steps.push(() => this.tell(told + 1));
    if (told === 3 && this.head === 3 && !this.streamed) steps.push(() => this.stream());
    if (first?.page) steps.push(() => this.answer(first));
    else if (first) steps.push(() => this.look(first));
    if (this.head < ENTRIES.length) steps.push(() => void (this.head += 1));
    return steps;
  }

  restart(): void {
    const lost = this.requests;
    this.requests = [];
    this.told = undefined;
    this.state = "dead";
    this.become("dead");
    for (const one of lost) one.reject(new Error("gone"));
  }

  restarted(): void {
    this.state = "running";
    this.become("running");
  }

  private look(request: Request): void {
    this.told = undefined;
    const after = request.from.seq ?? 0;
    const events = ENTRIES.slice(after, this.head).flatMap((updates, nth) =>
      updates.map((one) => ({ seq: after + nth + 1, at: 0, update: one })),
    );
    const state = this.head === 3 || this.head === 4 ? "running" : "idle";
    const waiting = this.head === 2 ? [{ messageId: "p1", delivery: "steer", text: "tidy" }] : [];
    const summary = { session: { state }, waiting, configOptions: [], usage: {}, cost: {} };
    request.page = { headSeq: this.head, floorSeq: after + 1, summary, events, more: false } as unknown as SubscribeResult;
  }

  private answer(request: Request): void {
    this.requests.shift();
    this.told = request.page?.headSeq;
    this.streamed = false;
    if (request.page) request.resolve(request.page);
  }

  private tell(seq: number): void {
    this.told = seq;
    for (const one of ENTRIES[seq - 1] ?? []) {
      this.say({ ...one, _meta: { magy: { ...(one._meta?.magy as object), seq, at: 0 } } } as unknown as AnyUpdate);
    }
  }

  private stream(): void {
    this.streamed = true;
    this.say(DELTA);
  }

  private say(news: AnyUpdate): void {
    this.hear({ sessionId: "one", update: news });
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

/**
 * The window listens, and so does its transcript, from some moment on; once the server may be
 * restarted. `choose` says which of so many things happens next.
 */
async function played(restarts: boolean, choose: (count: number) => number): Promise<{ t: Transcript; resumed: number }> {
  // A restart comes anywhere between the others: with one step less there are a fifth of the orders.
  const server = new Server(restarts ? 2 : 1);
  const subscriptions = new Subscriptions(server.wire(), () => false);
  const t = new Transcript();
  let resumed = 0;
  const begins = [
    () =>
      void subscriptions.add("one", {
        page: (page, again) => {
          resumed += Number(again);
          attached(t, "one", page, again);
        },
        update: (news) => update(t, news),
        failed: assert.fail,
      }),
    () => void subscriptions.add("one", { page: () => undefined, update: () => undefined, failed: assert.fail }),
  ];
  const breaks = restarts ? [() => server.restart(), () => server.restarted()] : [];
  for (;;) {
    const steps = server.steps();
    if (server.state === "dead") steps.length = 0;
    else if (begins.length) steps.push(() => begins.shift()?.());
    if (breaks.length) steps.push(() => breaks.shift()?.());
    if (!steps.length) return { t, resumed };
    steps[choose(steps.length)]?.();
    await settled();
  }
}

/** Plays each order in which the steps can come; returns how many there are. */
async function everyOrder(play: (choose: (count: number) => number) => Promise<void>): Promise<number> {
  const path: { chosen: number; count: number }[] = [];
  for (let orders = 1; ; orders += 1) {
    let at = 0;
    await play((count) => {
      const step = path[at] ?? { chosen: 0, count };
      path[at] = step;
      at += 1;
      return step.chosen;
    });
    while (path.length && (path.at(-1)?.chosen ?? 0) + 1 >= (path.at(-1)?.count ?? 0)) path.pop();
    const last = path.at(-1);
    if (!last) return orders;
    last.chosen += 1;
  }
}

for (const restarts of [false, true]) {
  test(`a prompt is shown once, whatever comes when${restarts ? ", and when the server is restarted" : ""}`, async () => {
    let everResumed = 0;
    const orders = await everyOrder(async (choose) => {
      const { t, resumed } = await played(restarts, choose);
      everResumed += resumed;
      assert.deepEqual(
        t.blocks.map(({ kind, data }) => [kind, data.queue ?? data.text]),
        [["user", "admitted"], ["agent", "Done."]],
      );
      assert.deepEqual([t.waiting, t.state], [[], "idle"]);
    });
    assert.ok(orders > 1000 && everResumed > 100, `${orders} orders, ${everResumed} resumed`);
  });
}
