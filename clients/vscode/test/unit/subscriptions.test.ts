import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConnectionState } from "../../src/connection";
import type { SessionListener } from "../../src/magy";
import { Subscriptions, type Wire } from "../../src/sessions/subscriptions";
import { MagyError, ServerGone } from "../../src/wire/errors";
import type { AnyUpdate, SubscribeResult, Update } from "../../src/wire/generated";

/** A server of one session with a log, as a `Wire`. */
class Log implements Pick<Wire, "state"> {
  state: ConnectionState = "running";
  readonly asked: string[] = [];
  /** What the next request comes to. */
  fails: Error | undefined;
  private states: ((state: ConnectionState) => void)[] = [];
  private updates: ((params: { sessionId: string; update: AnyUpdate }) => void) | undefined;
  constructor(public head: number) {}

  wire(): Wire {
    const wire = {
      state: this.state,
      request: (method: string, params: { from?: { seq?: number; tail?: number } }) => {
        this.asked.push(`${method} ${JSON.stringify(params.from ?? null)}`);
        const { fails } = this;
        this.fails = undefined;
        return fails ? Promise.reject(fails) : Promise.resolve(this.page(params.from?.seq ?? 0));
      },
      on: (_name: string, handler: never) => {
        this.updates = handler;
        return { dispose() {} };
      },
      onDidChangeState: (listener: (state: ConnectionState) => void) => {
        this.states.push(listener);
        return { dispose() {} };
      },
    };
    return wire;
  }

  page(after: number): SubscribeResult {
    const events = Array.from({ length: Math.max(0, this.head - after) }, (_, nth) => entry(after + nth + 1));
    const summary = {} as SubscribeResult["summary"];
    return { headSeq: this.head, floorSeq: after + 1, summary, events, more: false };
  }

  tell(): void {
    this.head += 1;
    this.say(notice(this.head));
  }

  say(update: unknown): void {
    this.updates?.({ sessionId: "one", update: update as AnyUpdate });
  }

  restart(): void {
    for (const state of ["dead", "starting", "running"] as const) this.states.forEach((one) => one(state));
  }
}

function notice(seq: number): AnyUpdate {
  return {
    sessionUpdate: "notice",
    severity: "info",
    title: "T",
    description: String(seq),
    _meta: { magy: { seq, at: 0 } },
  };
}

function entry(seq: number): Update {
  return { seq, at: 0, update: notice(seq) };
}

function recorder(): SessionListener & { had: string[] } {
  const had: string[] = [];
  return {
    had,
    page: (page, resumed) => had.push(`${resumed ? "resumed" : "page"} ${page.events.map((one) => one.seq).join()}`),
    update: (update) => had.push(`update ${update._meta?.magy?.seq}`),
    failed: (error) => had.push(`failed ${error.message}`),
  };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test("a listener has the page first, then updates in order", async () => {
  const log = new Log(2);
  const subscriptions = new Subscriptions(log.wire(), () => false);
  const one = recorder();
  subscriptions.add("one", one);
  await settled();
  log.tell();
  log.tell();
  assert.deepEqual(one.had, ["page 1,2", "update 3", "update 4"]);
});

test("a second listener gets the page, and the first only what it lacks", async () => {
  const log = new Log(2);
  const subscriptions = new Subscriptions(log.wire(), () => false);
  const [one, two] = [recorder(), recorder()];
  subscriptions.add("one", one);
  await settled();
  subscriptions.add("one", two);
  await settled();
  log.tell();
  assert.deepEqual(one.had, ["page 1,2", "resumed ", "update 3"]);
  assert.deepEqual(two.had, ["page 1,2", "update 3"]);
});

test("what one listener does not understand reaches the others, and what follows", async () => {
  const log = new Log(1);
  const subscriptions = new Subscriptions(log.wire(), () => false);
  const [odd, one] = [recorder(), recorder()];
  odd.update = () => {
    throw new TypeError("no content");
  };
  subscriptions.add("one", odd);
  subscriptions.add("one", one);
  await settled();
  for (const update of [{ sessionUpdate: "_of_a_newer_server", _meta: {} }, { sessionUpdate: "user_message", _meta: null }]) {
    log.say(update);
  }
  log.tell();
  assert.equal(one.had.length, 4);
  assert.equal(one.had.at(-1), "update 2");
});

test("after a restart nothing is missed and nothing comes twice", async () => {
  const log = new Log(2);
  const subscriptions = new Subscriptions(log.wire(), () => true);
  const one = recorder();
  subscriptions.add("one", one);
  await settled();
  log.head = 5;
  log.restart();
  await settled();
  assert.deepEqual(one.had, ["page 1,2", "resumed 3,4,5"]);
  assert.equal(log.asked.at(-1), 'magy/session/resume {"seq":2}');
});

test("a log that is shorter than before is shown anew", async () => {
  const log = new Log(4);
  const subscriptions = new Subscriptions(log.wire(), () => false);
  const one = recorder();
  subscriptions.add("one", one);
  await settled();
  log.head = 1;
  log.restart();
  await settled();
  assert.deepEqual(one.had, ["page 1,2,3,4", "page 1"]);
});

test("who has left hears nothing more, and the server is told with the last one", async () => {
  const log = new Log(1);
  const subscriptions = new Subscriptions(log.wire(), () => false);
  const one = recorder();
  const two = recorder();
  const first = subscriptions.add("one", one);
  const second = subscriptions.add("one", two);
  await settled();
  first.dispose();
  log.tell();
  assert.equal(one.had.includes("update 2"), false);
  assert.equal(two.had.at(-1), "update 2");
  second.dispose();
  assert.equal(log.asked.at(-1), "magy/session/unsubscribe null");
});

test("a session is lost by an answer only, not by a server that goes while it is asked", async () => {
  const log = new Log(2);
  const subscriptions = new Subscriptions(log.wire(), () => true);
  const [one, two] = [recorder(), recorder()];
  log.fails = new ServerGone("stopped before it answered");
  subscriptions.add("one", one); // the next server runs already when this fails
  await settled();
  assert.deepEqual(one.had, []);
  log.restart();
  await settled();
  assert.deepEqual(one.had, ["page 1,2"]);
  log.fails = new MagyError("There is no such session.", -32602, "unknown_session");
  subscriptions.add("two", two);
  await settled();
  assert.deepEqual(two.had, ["failed There is no such session."]);
});
