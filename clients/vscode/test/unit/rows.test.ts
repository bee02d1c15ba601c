import assert from "node:assert/strict";
import { test } from "node:test";
import { ago, childRow, fullness, money, rootOf, sessionRow, statusOf, suggestionsOf } from "../../src/sessions/rows";
import { updated } from "../../src/sessions/summary";
import type { Child, SessionInfo, Summary } from "../../src/wire/generated";

const NOW = Date.parse("2026-01-02T12:00:00Z");

const SESSION: SessionInfo = {
  sessionId: "one",
  parentSessionId: null,
  cwd: "/work",
  root: "/work",
  title: "A polite greeting",
  agent: "build",
  updatedAt: "2026-01-02T10:30:00Z",
  state: "idle",
  turns: 2,
  headSeq: 9,
};

const CHILD: Child = {
  sessionId: "one/4.0",
  parentSessionId: "one",
  name: "tests",
  agent: "explore",
  model: "p/m",
  state: "running",
  depth: 1,
  turns: 1,
  waiting: 2,
  questions: 0,
  usage: {},
  cost: { amount: 0.5 },
  treeUsage: {},
  treeCost: { amount: 0.75, unpriced: 1 },
  said: "Look for tests",
  stopReason: null,
  createdAt: "2026-01-02T10:30:00Z",
  updatedAt: "2026-01-02T10:30:00Z",
};

const SUMMARY: Summary = {
  session: SESSION,
  configOptions: [
    { configId: "agent", name: "Agent", currentValue: "build", options: ["build", "plan"] },
    { configId: "model", name: "Model", currentValue: "anthropic/claude", options: [] },
    { configId: "bypass", name: "Bypass", currentValue: "off", options: ["on", "off"] },
  ],
  waiting: [],
  interactions: [],
  plan: [],
  usage: {},
  cost: { amount: 1, currency: "USD", unpriced: 0 },
  treeUsage: {},
  treeCost: { amount: 1.5, currency: "USD", unpriced: 0 },
  context: { tokens: 50_000, window: 200_000 },
};

test("a session says what it does and how old it is", () => {
  assert.equal(sessionRow(SESSION, NOW, true).description, "1 h");
  const asks = sessionRow({ ...SESSION, state: "requires_action" }, NOW, true);
  assert.deepEqual([asks.description, asks.icon, asks.context], ["asks · 1 h", "bell-dot", "session.running"]);
  assert.equal(sessionRow({ ...SESSION, title: null }, NOW, true).label, "New session");
});

test("a turn that nobody works on is called interrupted", () => {
  const minutesAgo = (age: number) => new Date(NOW - age * 60_000).toISOString();
  const running = (age: number) => ({ ...SESSION, state: "running", updatedAt: minutesAgo(age) });
  const rows = [sessionRow(running(5), NOW, true), sessionRow(running(61), NOW, true), sessionRow(running(5), NOW, false)];
  assert.deepEqual(rows.map((row) => row.description), ["works · 5 min", "interrupted · 1 h", "interrupted · 5 min"]);
  assert.deepEqual(rows.map((row) => row.icon), ["loading~spin", "debug-pause", "debug-pause"]);
  assert.equal(sessionRow({ ...SESSION, state: "requires_action" }, NOW, false).description, "interrupted · 1 h");
  assert.equal(sessionRow(SESSION, NOW, false).description, "1 h");
  const { description, icon, context } = childRow({ ...CHILD, waiting: 0, treeCost: {} }, false);
  assert.deepEqual([description, icon, context], ["explore · interrupted", "debug-pause", "agent.idle"]);
  assert.equal(childRow({ ...CHILD, state: "completed" }, false).icon, "check");
});

test("an agent says what it does, what waits and what it costs", () => {
  assert.equal(childRow(CHILD, true).description, "explore · works · 2 waiting · $0.75+");
  assert.equal(childRow({ ...CHILD, name: "" }, true).label, "explore");
  assert.equal(childRow({ ...CHILD, name: "", waiting: 0, treeCost: {} }, true).description, "works");
  const contexts = (["queued", "waiting", "completed", "failed", "closed"] as const).map(
    (state) => childRow({ ...CHILD, state }, true).context,
  );
  assert.deepEqual(contexts, ["agent.running", "agent.running", "agent.idle", "agent.idle", "agent.closed"]);
});

test("the status has the model, the cost and the agents at work", () => {
  const { text, tooltip } = statusOf(SUMMARY, [CHILD, { ...CHILD, state: "completed" }]);
  assert.equal(text, "$(sparkle) claude $1.50 $(organization) 1");
  assert.match(tooltip, /Cost: \$1\.50, window 25% full/);
  assert.match(tooltip, /1 of 2 agents below work/);
});

test("updates keep the summary", () => {
  const said = { seq: 10, at: 0 };
  const running = updated(SUMMARY, { sessionUpdate: "state_update", state: "running", _meta: { magy: said } });
  assert.match(statusOf(running, []).text, /loading~spin/);
  const changed = updated(SUMMARY, {
    sessionUpdate: "config_option_update",
    configOptions: [{ configId: "bypass", name: "Bypass", currentValue: "on" }],
  });
  assert.deepEqual(changed.configOptions[2]?.options, ["on", "off"]);
  assert.match(statusOf(changed, []).text, /unlock/);
  const usage = { request: "4", model: "m", usage: {}, cost: null, ...said };
  const dearer = updated(SUMMARY, { sessionUpdate: "usage_update", used: 5, _meta: { magy: { ...usage, cost: 0.25 } } });
  assert.deepEqual([dearer.cost.amount, dearer.treeCost.amount], [1.25, 1.75]);
  const unknown = updated(SUMMARY, { sessionUpdate: "usage_update", used: 5, _meta: { magy: usage } });
  assert.equal(money(unknown.treeCost), "$1.50+");
});

test("an update of an unknown kind changes nothing", () => {
  const strange = { sessionUpdate: "from_the_future" } as unknown as Parameters<typeof updated>[1];
  assert.equal(updated(SUMMARY, strange), SUMMARY);
});

test("what suggestions took today is said while they are on", () => {
  const status = { enabled: true, model: "p/m", paused: "", requests: 3, tokens: 9, cost: 0.02, estimated: 0, dayCost: 1 };
  assert.equal(suggestionsOf(status), "Suggestions today: 3 requests, $0.020");
  assert.equal(suggestionsOf({ ...status, requests: 1, cost: 0 }), "Suggestions today: 1 request");
  assert.equal(suggestionsOf({ ...status, paused: "the limit is reached" }), "Suggestions pause: the limit is reached");
  assert.equal(suggestionsOf({ ...status, enabled: false }), "");
});

test("amounts, ages and ids in words", () => {
  assert.deepEqual([money({}), money({ amount: 0.0123 }), money({ unpriced: 2 })], ["", "$0.012", "price unknown"]);
  const hour = 3_600_000;
  assert.deepEqual([30_000, hour / 2, 5 * hour, 25 * hour, 80 * hour].map((age) => ago(NOW - age, NOW)), [
    "now", "30 min", "5 h", "1 day", "3 days",
  ]);
  assert.deepEqual([rootOf("one/4.0/2.1"), rootOf("one")], ["one", "one"]);
  assert.equal(fullness({ tokens: 5, window: 0 }), "");
});
