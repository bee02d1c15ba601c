import assert from "node:assert/strict";
import { test } from "node:test";
import { oneLine, paramsOf, previewText, redoOf, titleOf, undoOf } from "../../src/undo/turns";
import type { CheckpointInfo, CheckpointPreview, RestoredFile } from "../../src/wire/generated";

const turn: CheckpointInfo = {
  turnId: "t2",
  prompt: "make it\npolite",
  at: "2026-01-01T10:00:00+00:00",
  files: [],
  state: "applied",
  conversation: false,
  why: "It was summed up.",
  restoreId: "",
  inherited: false,
};

function restored(path: string, more: Partial<RestoredFile> = {}): RestoredFile {
  const uri = `file://${path}`;
  return { path, uri, action: "change", movedFrom: "", diff: "", added: 1, removed: 2, conflict: "", ...more };
}

function preview(more: Partial<CheckpointPreview>): CheckpointPreview {
  return { turnId: "t2", undoes: "", turns: ["t2"], files: [], conversation: true, prompt: "", why: "", ...more };
}

const name = (path: string) => path.slice("/p/".length);

test("a turn is undone with its files, and with the conversation where that can go back", () => {
  assert.deepEqual(paramsOf(undoOf("s", turn)), {
    sessionId: "s",
    turnId: "t2",
    files: true,
    conversation: false,
  });
  assert.deepEqual(paramsOf(redoOf("s", { ...turn, restoreId: "r1" })), {
    sessionId: "s",
    undoes: "r1",
    files: true,
    conversation: true,
  });
});

test("a preview has a title of one line", () => {
  assert.equal(titleOf(undoOf("s", turn), 2), "Undo 2 Turns: make it polite");
  assert.equal(oneLine("x".repeat(100)).length, 60);
});

test("a preview names what changes, what is left alone and why, and then has the diffs", () => {
  const files = [
    restored("/p/a.py", { diff: "--- a/a.py\n+++ b/a.py\n" }),
    restored("/p/new.py", { action: "remove", added: 0 }),
    restored("/p/to.py", { action: "rename", movedFrom: "/p/from.py", diff: "rename from from.py\nrename to to.py\n" }),
    restored("/p/b.py", { conflict: "You changed the same lines." }),
    restored("/p/same.py", { action: "nothing" }),
  ];
  const text = previewText({ ...undoOf("s", turn), conversation: true }, preview({ files }), name);
  assert.equal(
    text,
    [
      "#",
      "# a.py changes (+1 −2).",
      "# new.py is removed (+0 −2).",
      "# from.py is renamed to to.py (+1 −2).",
      "# b.py is left alone: You changed the same lines.",
      "# The conversation goes back to before this prompt.",
      "# Nothing of this has happened yet: Apply Preview (✓ above) does it.",
      "#",
      "--- a/a.py",
      "+++ b/a.py",
      "",
      "rename from from.py",
      "rename to to.py",
      "",
    ].join("\n"),
  );
});

test("a preview says why the conversation stays, and that no file would change", () => {
  const stays = preview({ conversation: false, why: "It was summed up." });
  const text = previewText(undoOf("s", turn), stays, name);
  assert.ok(text.includes("# No file would change.\n# It was summed up."));
  const without = previewText({ ...undoOf("s", turn), files: false }, preview({}), name);
  assert.ok(without.includes("# Files stay as they are."));
});
