import assert from "node:assert/strict";
import { test } from "node:test";
import { serverSettings } from "../../src/server/settings";

const given = (values: Record<string, unknown>) => serverSettings((name) => values[name], "/home/me");

test("what the person has not set is left to the server", () => {
  assert.deepEqual(given({}), {});
});

test("settings have their place in magy.toml, false ones too", () => {
  const values = { defaultAgent: "plan", inlineCompletion: true, loadCustomAgents: false, bashTimeout: 5, grepMaxMatches: 3 };
  assert.deepEqual(given(values), {
    default_agent: "plan",
    completion: { enabled: true },
    custom_agents: false,
    tools: { bash_timeout: 5, grep_matches: 3 },
  });
});

test("groups of tools that are left out are denied", () => {
  const { permission } = given({ enableTools: ["read", "plan", "agent", "editor", "git"] });
  assert.deepEqual(permission, { edit: "deny", write: "deny", bash: "deny", net: "deny" });
});

test("magy.settings goes over all others and keeps what is beside it", () => {
  const settings = { tools: { bash_timeout: 9 }, permission: { bash: { "make test": "allow" } } };
  assert.deepEqual(given({ bashTimeout: 5, grepMaxMatches: 3, settings }), {
    tools: { bash_timeout: 9, grep_matches: 3 },
    permission: { bash: { "make test": "allow" } },
  });
});

test("the directory of the audit may be below the home directory", () => {
  assert.deepEqual(given({ auditDirectory: "~/audit" }), { audit: { directory: "/home/me/audit" } });
});
