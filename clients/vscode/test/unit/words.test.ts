import assert from "node:assert/strict";
import { test } from "node:test";
import { choices, link, shortened, unlinked, whoAsks, why, wholeOf } from "../../src/questions/words";
import type { Interaction } from "../../src/wire/generated";

function question(more: Partial<Interaction> = {}): Interaction {
  return {
    interactionId: "one/4.0",
    sessionId: "one",
    parentSessionId: null,
    path: [],
    kind: "permission",
    toolCallId: "4.0",
    title: "Run rm -rf build",
    content: [],
    form: null,
    rule: "agent build: bash `*` -> ask",
    remember: [{ key: "bash", pattern: "rm -rf build" }],
    covers: ["bash `rm -rf build`"],
    agent: "build",
    createdAt: "2026-01-01T00:00:00Z",
    ...more,
  };
}

test("the first choice never allows, and neither do the two after it", () => {
  for (const content of [[], [{ type: "content" as const, content: { type: "text" as const, text: "x" } }]]) {
    const first = choices(question({ content })).slice(0, 3);
    assert.deepEqual(first.map((one) => one.answer?.outcome ?? one.does).includes("allow"), false);
    assert.equal(first[0]?.answer, undefined);
    assert.equal(first[0]?.does, content.length ? "look" : "leave");
  }
});

test("a form is filled in or refused, for nothing longer", () => {
  const field = { name: "x", label: "x", hint: "text", type: "string" as const, title: "", about: "", required: true, default: null };
  const form = { server: "shop", message: "Which?", url: "", fields: [{ ...field, choices: [], many: false, low: null, high: null, format: "" as const }] };
  const asked = question({ kind: "form", form, covers: [], remember: [] });
  const labels = (one: Interaction) => choices(one).map(({ label }) => label);
  assert.deepEqual(labels(asked), ["$(dash) Leave it open", "$(x) Refuse", "$(edit) Fill it in…"]);
  const link = { ...asked, form: { ...form, fields: [], url: "https://a.example" } };
  assert.equal(labels(link).at(-1), "$(edit) Agree");
  assert.doesNotMatch(why(asked) + wholeOf(asked), /this once only/);
});

test("what cannot be said narrowly is not offered for longer", () => {
  const scopes = (covers: string[]) => choices(question({ covers })).map((one) => one.answer?.scope);
  assert.deepEqual(scopes([]), [undefined, undefined, undefined, "once"]);
  assert.deepEqual(scopes(["bash `ls`"]).slice(3), ["once", "session", "project"]);
  assert.match(why(question({ covers: [] })), /this once only/);
});

test("what an answer covers is in its line, or shown before it holds", () => {
  const last = (covers: string[]) => choices(question({ covers })).at(-1);
  assert.equal(last(["bash `ls`"])?.detail, "Allows bash `ls`");
  assert.equal(last(["bash `ls`"])?.does, "answer");
  assert.equal(last(["a", "b", "c", "d"])?.does, "confirm");
  assert.equal(last(["x".repeat(200)])?.does, "confirm");
});

test("to let an agent begin holds until the next prompt, and says so", () => {
  const labels = choices(question({ remember: [{ key: "agent", pattern: "explore" }] })).map((one) => one.label);
  assert.ok(labels.includes("$(check) Allow until your next prompt"));
});

test("a child's question names all above it", () => {
  const path = [
    { sessionId: "one", agent: "build", name: "Polite greeting" },
    { sessionId: "one/4.0", agent: "explore", name: "" },
  ];
  assert.equal(whoAsks(question({ path })), "Polite greeting › explore");
  assert.equal(whoAsks(question({ path: path.slice(0, 1) })), "build");
});

test("the whole of a question cannot leave its fence", () => {
  const text = "echo one\n```\n# Not a heading\n````\n";
  const whole = wholeOf(question({ content: [{ type: "content", content: { type: "text", text } }] }));
  assert.ok(whole.includes(`\`\`\`\`\`\n${text}\n\`\`\`\`\``));
  assert.ok(whole.includes("    bash `rm -rf build`"));
});

test("of a long text both ends are shown, with how much is left out", () => {
  const short = shortened(`${"a".repeat(60)}${"b".repeat(60)}`, 50);
  assert.equal(short, `${"a".repeat(30)} … (+70 characters) … ${"b".repeat(20)}`);
  assert.equal(shortened("short", 50), "short");
});

test("a notification has our links, and none that a question brings", () => {
  // What VS Code takes for a link in a notification.
  const linked = /\[([^\]]+)\]\(((?:https?:\/\/|command:|file:)[^)\s]+)\)/i;
  const [, label, target = ""] = linked.exec(link("Answer…", "magy.answerQuestion", "one (2)/4.0")) ?? [];
  assert.equal(label, "Answer…");
  const [command, query = ""] = target.split("?");
  assert.equal(command, "command:magy.answerQuestion");
  assert.deepEqual(JSON.parse(decodeURIComponent(query)), ["one (2)/4.0"]);
  assert.doesNotMatch(unlinked("echo [Allow](command:x) [web](https://example.org) [it](FILE:/x)"), linked);
  assert.equal(unlinked("a[0](x); echo [b] (c)"), "a[0](x); echo [b] (c)");
});
