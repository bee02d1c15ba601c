import assert from "node:assert/strict";
import { test } from "node:test";
import { Decisions, summary, trouble } from "../../src/review/decisions";
import {
  about,
  buttonLine,
  fenced,
  lineSpan,
  linesOf,
  sentence,
  touching,
  unseen,
  unseenBlock,
} from "../../src/review/hunks";
import type { ReviewFile, ReviewHunk, ReviewOutcome } from "../../src/wire/generated";

function range(first: number, behind: number, column = 0) {
  return { start: { line: first, character: 0 }, end: { line: behind, character: column } };
}

function hunk(more: Partial<ReviewHunk> = {}): ReviewHunk {
  return {
    hunkId: "h",
    kind: "change",
    range: range(3, 5),
    baseRange: range(3, 4),
    anchor: 3,
    above: true,
    oldText: "    return 1\n",
    newText: "    x = 2\n    return x\n",
    words: [],
    state: "pending",
    amended: false,
    origins: [{ sessionId: "s", agent: "build", turnId: "t", toolCallId: "c", command: "" }],
    comments: [],
    ...more,
  };
}

function file(hunks: ReviewHunk[], mode: "applied" | "proposed" = "applied"): ReviewFile {
  return {
    uri: "file:///p/app.py",
    baseUri: "magy://base/p/app.py",
    proposedUri: null,
    status: "modified",
    oldUri: null,
    revision: "1",
    docVersion: 4,
    mode,
    eol: "\n",
    finalNewline: { base: true, current: true },
    added: 2,
    removed: 1,
    hunks,
  };
}

const deleted = hunk({ kind: "delete", range: range(5, 5), anchor: 4, above: false, newText: "" });

test("a hunk is at the lines that it has, and one that only deletes at those around it", () => {
  const at = (one: ReviewHunk, first: number, last = first) => touching([file([one])], first, last).length;
  assert.deepEqual([2, 3, 4, 5].map((line) => at(hunk(), line)), [0, 1, 1, 0]);
  assert.deepEqual([3, 4, 5, 6].map((line) => at(deleted, line)), [0, 1, 1, 0]);
  assert.equal(at(hunk(), 0, 9), 1);
  const atEnd = hunk({ range: range(3, 4, 7) }); // a last line without a line end
  assert.deepEqual(lineSpan(atEnd.range), { start: 3, end: 5 });
  assert.deepEqual([4, 5].map((line) => at(atEnd, line)), [1, 0]);
});

test("the buttons of a deletion at the end of the file stand above its last line", () => {
  assert.equal(buttonLine(hunk({ range: range(9, 9) }), 9), 8);
  assert.equal(buttonLine(hunk(), 9), 3);
});

test("a button names the lines that the text does not show", () => {
  const shown = (one: ReviewHunk, mode?: "proposed") => unseen({ file: file([one], mode), hunk: one });
  assert.equal(shown(hunk()), "− return 1");
  assert.equal(shown(hunk({ oldText: "\n  a\r\nb\n" })), "− a … 2 more lines");
  assert.equal(shown(hunk({ oldText: "\n\n" })), "− 2 empty lines");
  assert.equal(shown(hunk({ kind: "add", oldText: "" })), "");
  assert.equal(shown(hunk(), "proposed"), "+ x = 2 … 1 more line");
  assert.equal(shown(deleted, "proposed"), "− this line");
  assert.equal(shown(hunk({ oldText: `${"x".repeat(100)}\n` })).length, 82);
});

test("what is not of lines is said as a sentence", () => {
  const one = hunk({ kind: "create", oldText: "nothing", newText: "a file of 3 lines" });
  assert.equal(sentence(one), "The file is new: a file of 3 lines.");
  assert.equal(unseen({ file: file([one]), hunk: one }), sentence(one));
  assert.equal(unseenBlock({ file: file([one]), hunk: one }), "");
});

test("no text ends the block in which a hover shows it", () => {
  const one = hunk({ oldText: "```\n[click](command:evil)\n````\n" });
  const block = unseenBlock({ file: file([one]), hunk: one });
  assert.ok(block.startsWith("`````diff\n- ```\n"));
  assert.ok(block.endsWith("\n- ````\n`````"));
  assert.equal(fenced("plain", "diff"), "```diff\nplain\n```");
});

test("a long old text is cut in a hover, which says so", () => {
  const one = hunk({ oldText: "x\n".repeat(40) });
  const lines = unseenBlock({ file: file([one]), hunk: one }).split("\n");
  assert.equal(lines.at(-2), "… 10 more lines");
  assert.equal(linesOf(one.oldText).length, 40);
});

test("a hover says who changed it and what became of it", () => {
  const said = (more: Partial<ReviewHunk>) => about({ file: file([]), hunk: hunk(more) });
  assert.equal(said({}), "build changed this");
  assert.equal(said({ amended: true, origins: [] }), "An agent changed this; you have changed it since");
  const origin = { sessionId: "s", agent: "build", turnId: "t", toolCallId: "c", command: "make fmt" };
  assert.equal(said({ origins: [origin] }), "Changed while `make fmt` ran");
});

function outcome(more: Partial<ReviewOutcome>): ReviewOutcome {
  return { decisionId: "d", results: [], applied: true, message: "", pending: 0, file: null, ...more };
}

test("a decision is told, and what was not done is told instead", () => {
  const two = outcome({ results: ["a", "b"].map((hunkId) => ({ hunkId, state: "rejected" })) });
  assert.equal(summary("app.py", two), "Rejected 2 changes in app.py");
  assert.equal(trouble(two), null);
  assert.equal(trouble(outcome({ message: "It is read-only." })), "It is read-only.");
  const stale = outcome({ decisionId: null, results: [{ hunkId: "a", state: "stale" }] });
  assert.match(trouble(stale) ?? "", /another one by now/);
  assert.equal(trouble(outcome({ decisionId: null })), "Nothing was decided.");
});

test("the latest decision is undone first, and 200 are kept", () => {
  const decisions = new Decisions();
  for (let n = 0; n < 205; n++) {
    decisions.add({ decisionId: `${n}`, uri: "u", proposed: false, label: "" });
  }
  assert.deepEqual([decisions.all.length, decisions.all[0]?.decisionId], [200, "204"]);
  decisions.remove(decisions.all[0]!);
  assert.equal(decisions.all[0]?.decisionId, "203");
});
