import * as vscode from "vscode";
import { registerCommands } from "./commands";
import { Connection } from "./connection";
import { registerInPlace } from "./inplace/register";
import type { Magy } from "./magy";
import { pickAnswer } from "./questions/pick";
import { OpenQuestions } from "./questions/service";
import { registerReview } from "./review/register";
import { ServerLauncher } from "./server/launcher";
import { WindowSessions } from "./sessions/service";
import { registerTranscript } from "./transcript/register";
import { registerUndo } from "./undo/register";

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("Magy", { log: true });
  const connection = new Connection(new ServerLauncher(log), log, () => 30);
  const sessions = new WindowSessions(connection, context.workspaceState);
  const questions = new OpenQuestions(connection, pickAnswer);
  const magy: Magy = { connection, sessions, questions, log };
  context.subscriptions.push(log, connection, sessions, questions);

  registerCommands(context, log, {
    "magy.restartServer": () => connection.restart(),
    "magy.showLog": () => log.show(),
  });
  registerTranscript(context, magy);
  registerReview(context, magy);
  registerInPlace(context, magy);
  registerUndo(context, magy);

  if (vscode.workspace.workspaceFolders?.length) {
    connection.start().catch((error: unknown) => log.error(String(error)));
  }
}
