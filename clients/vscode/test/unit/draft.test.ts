import assert from "node:assert/strict";
import { test } from "node:test";
import { headline, type Look, picture } from "../../src/inplace/draft";

const LOOK: Look = { fontFamily: '"Fira Code", monospace', fontSize: 14, lineHeight: 19, tabSize: 4, dark: true };

function rows(svg: string): string[] {
  return [...svg.matchAll(/<text [^>]*>([^<]*)<\/text>/g)].map((found) => found[1] ?? "");
}

test("a draft is drawn line by line, and nothing of it is markup", () => {
  const drawn = picture("if a < b && c:\n\treturn \"<script>\"\u0000\n", LOOK);
  assert.ok(drawn);
  assert.deepEqual(rows(drawn.svg), [
    "if a &lt; b &amp;&amp; c:",
    "    return &quot;&lt;script&gt;&quot;\u00b7",
  ]);
  assert.equal(drawn.height, 38);
  assert.ok(drawn.svg.includes("font-family:&quot;") === false);
});

test("of a long draft the last lines are drawn, and of a long line its beginning", () => {
  const drawn = picture(`${"x".repeat(500)}\n`.repeat(3) + "line\n".repeat(40), LOOK);
  assert.equal(rows(drawn?.svg ?? "").length, 30);
  const wide = picture("x".repeat(500), LOOK);
  assert.equal(rows(wide?.svg ?? "")[0]?.length, 200);
});

test("nothing is drawn of an empty draft", () => {
  assert.equal(picture("", LOOK), undefined);
});

test("what is said above a rewrite is short", () => {
  assert.equal(headline("make it\n louder", ""), "make it louder");
  assert.equal(headline("louder", "a\n"), "louder (1 line so far)");
  assert.equal(headline("x".repeat(99), "a\nb").length, 60 + " (2 lines so far)".length);
});
