/**
 * Settings of the server by the name that they have in VS Code, with their keys in magy.toml. One
 * that the person has not set is left to magy.toml, and then to the server.
 */
const OF_THE_SERVER: Readonly<Record<string, readonly string[]>> = {
  defaultAgent: ["default_agent"],
  loadCustomAgents: ["custom_agents"],
  requestTimeout: ["model", "timeout"],
  maxSamplingRequests: ["limits", "requests"],
  bashTimeout: ["tools", "bash_timeout"],
  grepProgram: ["tools", "grep_program"],
  grepMaxMatches: ["tools", "grep_matches"],
  enableAuditLog: ["audit", "enabled"],
  auditDirectory: ["audit", "directory"],
  auditPreviewLength: ["audit", "preview_length"],
  inlineCompletion: ["completion", "enabled"],
  inlineCompletionModel: ["completion", "model"],
};

/** The permission keys that stand for groups of tools. */
const GROUPS = ["read", "edit", "write", "bash", "git", "net", "plan", "agent", "editor"];

/** The names, without `magy.`, of what counts only when the server starts. */
export const AT_START = [
  "path",
  "sessionDirectory",
  "settings",
  "enableTools",
  ...Object.keys(OF_THE_SERVER),
];

type Tree = { [key: string]: unknown };

/**
 * The settings to announce, in the shape of magy.toml. `changed` gives what the person has set
 * under a name, or undefined; `home` is their home directory.
 */
export function serverSettings(changed: (name: string) => unknown, home: string): Tree {
  let settings: Tree = {};
  for (const [name, keys] of Object.entries(OF_THE_SERVER)) {
    const value = changed(name);
    if (value === undefined) continue;
    const given = typeof value === "string" && name === "auditDirectory" ? atHome(value, home) : value;
    settings = merged(settings, nested(keys, given));
  }
  const groups = changed("enableTools");
  if (Array.isArray(groups)) {
    for (const key of GROUPS.filter((group) => !groups.includes(group))) {
      settings = merged(settings, { permission: { [key]: "deny" } });
    }
  }
  const more = changed("settings");
  return isTree(more) ? merged(settings, more) : settings;
}

/** A path with `~` spelled out. */
export function atHome(path: string, home: string): string {
  return path.replace(/^~(?=\/|$)/, home);
}

function nested(keys: readonly string[], value: unknown): Tree {
  return keys.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as Tree;
}

function merged(under: Tree, over: Tree): Tree {
  const result: Tree = { ...under };
  for (const [key, value] of Object.entries(over)) {
    const before = result[key];
    result[key] = isTree(before) && isTree(value) ? merged(before, value) : value;
  }
  return result;
}

function isTree(value: unknown): value is Tree {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
