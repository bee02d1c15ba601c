import assert from "node:assert/strict";
import { test } from "node:test";
import { find, type Machine, misfit, programAt, type Search } from "../../src/server/find";

function machine(files: string[], env: Machine["env"] = { PATH: "/usr/bin:bin:/opt/bin" }): Machine {
  return { home: "/home/me", env, runs: (path) => Promise.resolve(files.includes(path)) };
}

const SEARCH: Search = {
  setting: [],
  folders: ["/projects/one", "/projects/two"],
  trusted: true,
  python: undefined,
  own: "/store/server",
};

/** Every place, in the order in which they are looked through. */
const PLACES = [
  "/envs/three/bin/magy",
  "/projects/one/.venv/bin/magy",
  "/projects/one/venv/bin/magy",
  "/projects/two/.venv/bin/magy",
  "/usr/bin/magy",
  "/opt/bin/magy",
  "/home/me/.local/bin/magy",
  "/home/me/.local/share/uv/tools/magy/bin/magy",
  "/home/me/.local/share/pipx/venvs/magy/bin/magy",
  "/store/server/bin/magy",
];

test("the places are looked through in their order", async () => {
  const search = { ...SEARCH, python: "/envs/three/bin/python" };
  for (const nth of PLACES.keys()) {
    const found = await find(search, machine(PLACES.slice(nth)));
    assert.equal("path" in found && found.path, PLACES[nth]);
  }
  assert.deepEqual(await find(search, machine([])), { missing: "Magy's server was not found." });
});

test("a setting is the last word", async () => {
  const setting = ["${workspaceFolder}/tools/magy", "~/magy"];
  const home = await find({ ...SEARCH, setting }, machine([...PLACES, "/home/me/magy"]));
  assert.deepEqual(home, { path: "/home/me/magy", place: "setting" });
  const second = await find({ ...SEARCH, setting }, machine(["/projects/two/tools/magy"]));
  assert.deepEqual(second, { path: "/projects/two/tools/magy", place: "setting" });
  const none = await find({ ...SEARCH, setting }, machine(PLACES));
  assert.match("missing" in none ? none.missing : "", /names \$\{workspaceFolder\}\/tools\/magy, ~\/magy, where/);
});

test("a bare name in the setting is looked up on the PATH, a relative path in each folder", async () => {
  const bare = await find({ ...SEARCH, setting: ["magy-dev"] }, machine(["/opt/bin/magy-dev"]));
  assert.equal("path" in bare && bare.path, "/opt/bin/magy-dev");
  const near = await find({ ...SEARCH, setting: ["env/bin/magy"] }, machine(["/projects/two/env/bin/magy"]));
  assert.equal("path" in near && near.path, "/projects/two/env/bin/magy");
});

test("a restricted window runs nothing out of its folders", async () => {
  const env = { PATH: "/projects/one/bin:/usr/bin", UV_TOOL_BIN_DIR: "/projects/two/bin" };
  const inside = ["/projects/one/.venv/bin/magy", "/projects/one/bin/magy", "/projects/two/bin/magy", "/projects/one/py/bin/magy"];
  const search = { ...SEARCH, trusted: false, python: "/projects/one/py/bin/python" };
  assert.ok("missing" in (await find(search, machine(inside, env))));
  const outside = await find(search, machine([...inside, "/usr/bin/magy"], env));
  assert.deepEqual(outside, { path: "/usr/bin/magy", place: "path" });
});

test("places of uv and pipx that the environment names are looked at", async () => {
  const env = { UV_TOOL_DIR: "/uv", PIPX_HOME: "/px", XDG_DATA_HOME: "/data" };
  for (const path of ["/uv/magy/bin/magy", "/px/venvs/magy/bin/magy", "/data/pipx/venvs/magy/bin/magy"]) {
    assert.deepEqual(await find(SEARCH, machine([path], env)), { path, place: "tools" });
  }
});

test("a server of another protocol is said, with what to do", () => {
  const client = { version: "0.1.0", protocol: 2 };
  assert.equal(misfit({ version: "0.3.0", protocol: 2 }, client), "");
  assert.match(misfit({ version: "0.0.9", protocol: 1 }, client), /0\.0\.9.*update the server/);
  assert.match(misfit({ version: "9.0.0", protocol: 3 }, client), /update the extension/);
  assert.match(misfit(undefined, client), /unknown version.*update the server/);
});

test("a person names the program, a checkout or an environment", async () => {
  const there = machine(["/home/me/src/magy/.venv/bin/magy", "/envs/three/bin/magy", "/opt/bin/magy-dev"]);
  const at = (given: string) => programAt(given, SEARCH, there);
  assert.equal(await at("~/src/magy"), "/home/me/src/magy/.venv/bin/magy");
  assert.equal(await at("~/src/magy/.venv/bin/magy"), "/home/me/src/magy/.venv/bin/magy");
  assert.equal(await at("/envs/three/"), "/envs/three/bin/magy");
  assert.equal(await at("magy-dev"), "/opt/bin/magy-dev");
  assert.equal(await at("~/src"), undefined);
});
