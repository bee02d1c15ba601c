import * as vscode from "vscode";
import { Connection } from "./connection";
import { registerInPlace } from "./inplace/register";
import { registerKnowledge } from "./knowledge/register";
import type { Magy } from "./magy";
import { pickAnswer } from "./questions/pick";
import { registerQuestions } from "./questions/register";
import { OpenQuestions } from "./questions/service";
import { registerReview } from "./review/register";
import { Reviews } from "./review/reviews";
import { Keys } from "./server/keys";
import { configuration, ServerLauncher } from "./server/launcher";
import { begin, registerServer } from "./server/register";
import { registerSessions } from "./sessions/register";
import { WindowSessions } from "./sessions/service";
import { registerTranscript } from "./transcript/register";
import { registerUndo } from "./undo/register";

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("Magy", { log: true });
  const keys = new Keys(context.secrets);
  const launcher = new ServerLauncher(context, keys, log);
  const connection = new Connection(launcher, log, () => configuration().get("patience", 30));
  const sessions = new WindowSessions(connection, context.workspaceState);
  const questions = new OpenQuestions(connection, pickAnswer);
  const magy: Magy = { connection, sessions, questions, log };
  const reviews = new Reviews(connection, log);
  context.subscriptions.push(log, connection, sessions, questions, reviews);

  registerServer(context, connection, launcher, keys, log);
  registerSessions(context, magy, sessions, launcher);
  registerQuestions(context, magy);
  registerTranscript(context, magy, reviews);
  registerReview(context, magy, reviews);
  registerInPlace(context, magy);
  registerUndo(context, magy);
  registerKnowledge(context, connection);
  begin(connection, log);
}
