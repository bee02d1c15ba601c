import { isAbsolute, join, resolve } from "node:path";

/** What is asked of the machine; a test passes one of its own. */
export interface Machine {
  home: string;
  env: Readonly<Record<string, string | undefined>>;
  /** Whether this file is there and may be run. */
  runs(path: string): Promise<boolean>;
}

/** Where to look. */
export interface Search {
  /** The setting `magy.path`. */
  setting: readonly string[];
  /** The folders of the window. */
  folders: readonly string[];
  /** false: nothing inside the folders is run. */
  trusted: boolean;
  /** The Python interpreter that is chosen for the folders, if one is. */
  python: string | undefined;
  /** The environment that the extension keeps. */
  own: string;
}

export type Place = "setting" | "environment" | "path" | "tools" | "own";

export interface Found {
  path: string;
  place: Place;
}

/** The server's program, or `missing`: why there is none, as a sentence. */
export type Finding = Found | { missing: string };

export async function find(search: Search, machine: Machine): Promise<Finding> {
  if (search.setting.length) return bySetting(search, machine);
  for (const [place, paths] of candidates(search, machine)) {
    for (const path of paths) {
      if (await machine.runs(path)) return { path, place };
    }
  }
  return { missing: "Magy's server was not found." };
}

/** The person named it: nothing else will do. */
async function bySetting(search: Search, machine: Machine): Promise<Finding> {
  const paths = search.setting.flatMap((one) => spelledOut(one, search, machine));
  for (const path of paths) {
    if (await machine.runs(path)) return { path, place: "setting" };
  }
  const named = search.setting.join(", ");
  return { missing: `The setting magy.path names ${named}, where no program is that can be run.` };
}

/** The program that a person means by a path: it, or `magy` in an environment or a checkout that is there. */
export async function programAt(given: string, search: Search, machine: Machine): Promise<string | undefined> {
  const inside = ["", "bin/magy", ".venv/bin/magy"];
  for (const path of spelledOut(given, search, machine).flatMap((at) => inside.map((one) => join(at, one)))) {
    if (allowed(path, search) && (await machine.runs(path))) return path;
  }
  return undefined;
}

/** A path of the setting; one for each folder where it says `${workspaceFolder}`. */
function spelledOut(path: string, search: Search, machine: Machine): string[] {
  const at = path.replace(/^~(?=\/|$)/, machine.home).replaceAll("${userHome}", machine.home);
  if (at.includes("${workspaceFolder}")) {
    return search.folders.map((folder) => at.replaceAll("${workspaceFolder}", folder));
  }
  if (isAbsolute(at)) return [at];
  if (!at.includes("/")) return onPath(at, search, machine);
  return search.folders.map((folder) => resolve(folder, at));
}

function* candidates(search: Search, machine: Machine): Generator<[Place, string[]]> {
  if (search.trusted) {
    const beside = search.python ? [join(search.python, "..", "magy")] : [];
    const local = search.folders.flatMap((folder) =>
      [".venv", "venv"].map((name) => join(folder, name, "bin", "magy")),
    );
    yield ["environment", [...beside, ...local]];
  }
  yield ["path", onPath("magy", search, machine)];
  yield ["tools", ofTools(machine).filter((path) => allowed(path, search))];
  yield ["own", [join(search.own, "bin", "magy")]];
}

function onPath(program: string, search: Search, machine: Machine): string[] {
  const places = (machine.env.PATH ?? "").split(":").filter((place) => isAbsolute(place));
  return places.map((place) => join(place, program)).filter((path) => allowed(path, search));
}

/** Where `uv tool` and `pipx` put programs, which is not always on the PATH of a desktop. */
function ofTools({ home, env }: Machine): string[] {
  const data = env.XDG_DATA_HOME ?? join(home, ".local", "share");
  const bins = [env.UV_TOOL_BIN_DIR, env.PIPX_BIN_DIR, env.XDG_BIN_HOME, join(home, ".local", "bin")];
  const environments = [
    join(env.UV_TOOL_DIR ?? join(data, "uv", "tools"), "magy"),
    ...(env.PIPX_HOME ? [join(env.PIPX_HOME, "venvs", "magy")] : []),
    join(data, "pipx", "venvs", "magy"),
    join(home, ".local", "pipx", "venvs", "magy"),
  ];
  return [
    ...bins.filter((place) => place !== undefined).map((place) => join(place, "magy")),
    ...environments.map((place) => join(place, "bin", "magy")),
  ];
}

/** In a restricted window nothing is run that lies in its folders. */
function allowed(path: string, search: Search): boolean {
  if (search.trusted) return true;
  const at = resolve(path);
  return !search.folders.some((folder) => at.startsWith(`${resolve(folder)}/`));
}

/** Whether a version of the server fits: "" or a sentence that says what to do. */
export function misfit(
  server: { version?: string; protocol?: number } | undefined,
  client: { version: string; protocol: number },
): string {
  if (server?.protocol === client.protocol) return "";
  const theirs = server?.version ?? "of an unknown version";
  const older = (server?.protocol ?? 0) < client.protocol;
  const todo = older ? "update the server, then restart it" : "update the extension";
  return (
    `Magy's server (${theirs}) speaks version ${server?.protocol ?? "?"} of the protocol, and this ` +
    `extension (${client.version}) version ${client.protocol}. Some things will not work: ${todo}.`
  );
}
