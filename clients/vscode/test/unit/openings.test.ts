import assert from "node:assert/strict";
import { test } from "node:test";
import { Openings } from "../../src/knowledge/openings";

test("all who ask about a file while it is opened wait as long as the first, and it is opened once", async () => {
  const openings = new Openings();
  const end = Date.now() + 50;
  let opened: (end: number) => void = () => undefined;
  const first = openings.until("file:///a", false, () => new Promise((resolve) => (opened = resolve)));
  const second = openings.until("file:///a", true, () => assert.fail("opened twice"));
  opened(end);
  assert.deepEqual(await Promise.all([first, second]), [end, end]);
  let later = end;
  while (later) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    later = await openings.until("file:///a", true, () => assert.fail("opened twice"));
  }
  assert.ok(Date.now() >= end - 1);
});

test("a file that cannot be opened is opened anew by who asks next", async () => {
  const openings = new Openings();
  const missing = () => Promise.reject(new Error("missing"));
  await assert.rejects(openings.until("file:///b", false, missing));
  assert.equal(await openings.until("file:///b", false, () => Promise.resolve(7)), 7);
});
