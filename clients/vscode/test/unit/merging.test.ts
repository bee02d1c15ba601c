import assert from "node:assert/strict";
import { test } from "node:test";
import { merged } from "../../src/questions/merging";
import type { Interaction } from "../../src/wire/generated";

function question(interactionId: string, minute: number): Interaction {
  return { interactionId, createdAt: `2026-01-01T00:0${minute}:00Z` } as Interaction;
}

test("what changed while the list was on its way holds, and the oldest question is the first", () => {
  const since = [
    { sessionId: "s", opened: [question("new", 3)], resolved: ["answered"] },
    { sessionId: "s", opened: [question("brief", 4)], resolved: [] },
    { sessionId: "s", opened: [], resolved: ["brief"] },
  ];
  const open = merged([question("second", 2), question("answered", 0), question("first", 1)], since);
  assert.deepEqual([...open.keys()], ["first", "second", "new"]);
});
