import { type ChildProcess, spawn } from "node:child_process";
import * as vscode from "vscode";
import type { Launcher } from "../connection";
import type { Announcement } from "../wire/generated";

/** Starts the server that this window uses. */
export class ServerLauncher implements Launcher {
  constructor(private readonly log: vscode.LogOutputChannel) {}

  launch(): Promise<ChildProcess | undefined> {
    const [program = "magy"] = vscode.workspace.getConfiguration("magy").get<string[]>("path", []);
    const cwd = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
    this.log.info(`Starting ${program} lsp`);
    const child = spawn(program, ["lsp"], { cwd, stdio: "pipe" });
    return new Promise((resolve, reject) => {
      child.once("spawn", () => resolve(child));
      child.once("error", reject);
    });
  }

  announce(): Promise<Announcement> {
    return Promise.resolve({
      client: { name: "vscode" },
      capabilities: { interactions: true, review: true },
    });
  }
}
