import { type ChildProcess, execFile, spawn } from "node:child_process";
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import * as vscode from "vscode";
import type { Launcher } from "../connection";
import type { Announcement } from "../wire/generated";
import { type Finding, find, type Found, type Machine, programAt, type Search } from "./find";
import type { Keys } from "./keys";
import { interpreter } from "./python";
import { atHome, serverSettings } from "./settings";

const WHERE: Record<Found["place"], string> = {
  setting: "by the setting magy.path",
  environment: "in the Python environment of the folder",
  path: "on the PATH",
  tools: "where uv and pipx install programs",
  own: "in the extension's own environment",
};

/** Finds and starts the server that this window uses. */
export class ServerLauncher implements Launcher {
  private used: Found | undefined;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly keys: Keys,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  /** The environment that the extension installs a server into. */
  get own(): string {
    return join(this.context.globalStorageUri.fsPath, "server");
  }

  /** The program that was started last. */
  get program(): Found | undefined {
    return this.used;
  }

  async look(): Promise<Finding> {
    if (process.platform === "win32") {
      return {
        missing:
          "Magy's server runs on Linux and macOS. On Windows, open the folder in WSL (WSL: Reopen Folder in WSL).",
      };
    }
    return find(await this.search(), MACHINE);
  }

  /** The program that a person means by a path, if there is one. */
  async programAt(given: string): Promise<string | undefined> {
    return programAt(given, await this.search(), MACHINE);
  }

  private async search(): Promise<Search> {
    const folders = vscode.workspace.workspaceFolders ?? [];
    const trusted = vscode.workspace.isTrusted;
    return {
      setting: configuration().get<string[]>("path", []),
      folders: folders.map((folder) => folder.uri.fsPath),
      trusted,
      python: trusted ? await interpreter(folders[0]?.uri) : undefined,
      own: this.own,
    };
  }

  async launch(): Promise<ChildProcess | { missing: string }> {
    const found = await this.look();
    if ("missing" in found) return found;
    this.used = found;
    this.log.info(`Starting ${found.path} lsp, found ${WHERE[found.place]}.`);
    const child = spawn(found.path, ["lsp"], {
      cwd: vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? homedir(),
      env: environment(),
      stdio: "pipe",
    });
    return new Promise((resolve, reject) => {
      child.once("spawn", () => resolve(child));
      child.once("error", reject);
    });
  }

  /** Runs the server's program with these arguments. Throws what it says when it fails. */
  async run(args: readonly string[]): Promise<void> {
    const program = this.used?.path;
    if (!program) throw new Error("Magy's server does not run.");
    await promisify(execFile)(program, args, { env: environment() }).catch((error: Error & { stderr?: string }) => {
      throw new Error(error.stderr?.trim() || error.message);
    });
  }

  async announce(editor: Record<string, boolean>): Promise<Announcement> {
    return {
      client: { name: "vscode" },
      capabilities: { interactions: true, review: true, editor },
      settings: serverSettings(changed, homedir()),
      restricted: !vscode.workspace.isTrusted,
      keys: await this.keys.all(),
    };
  }
}

const MACHINE: Machine = {
  home: homedir(),
  env: process.env,
  async runs(path: string): Promise<boolean> {
    try {
      await access(path, constants.X_OK);
      return (await stat(path)).isFile();
    } catch {
      return false;
    }
  },
};

export function configuration(): vscode.WorkspaceConfiguration {
  return vscode.workspace.getConfiguration("magy");
}

/** What the person has set under a name; undefined: nothing, though there may be a default. */
function changed(name: string): unknown {
  const all = configuration().inspect(name);
  return all?.workspaceFolderValue ?? all?.workspaceValue ?? all?.globalValue;
}

function environment(): NodeJS.ProcessEnv {
  const directory = configuration().get<string>("sessionDirectory", "");
  if (!directory) return process.env;
  return { ...process.env, MAGY_STATE_DIR: atHome(directory, homedir()) };
}
