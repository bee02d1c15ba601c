import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import type { Connection } from "../connection";
import type { Child, ChildSpawnParams } from "../wire/generated";

const PAGE = 200;
/** Milliseconds that one waits for an agent at most. */
const DAY = 86_400_000;
/** Characters of an agent's result in a notification. */
const TOAST = 300;
/** Characters of a name that an agent has of its task. */
const NAME = 40;

/** All agents below a session. */
export async function listChildren(connection: Connection, parentSessionId: string, includeClosed: boolean): Promise<Child[]> {
  const children: Child[] = [];
  let cursor: string | null = null;
  do {
    const page: { children: Child[]; nextCursor: string | null } = await connection.request("magy/child/list", {
      parentSessionId, includeClosed, limit: PAGE, cursor,
    });
    children.push(...page.children);
    cursor = page.nextCursor;
  } while (cursor !== null);
  return children;
}

/** Gives an agent a task, whose first line it is called by. */
export async function spawnChild(
  connection: Connection,
  child: Pick<ChildSpawnParams, "parentSessionId" | "agent" | "worktree"> & { task: string; along: ChildSpawnParams["prompt"] },
): Promise<void> {
  const { task, along, ...where } = child;
  const line = task.trim().split("\n")[0] ?? "";
  const name = line.length > NAME ? `${line.slice(0, NAME - 1)}…` : line;
  const prompt: ChildSpawnParams["prompt"] = [{ type: "text", text: task }, ...along];
  await connection.request("magy/child/spawn", { ...where, requestKey: `vscode-${randomUUID()}`, name, prompt });
}

/** Waits for the result of an agent, where the person sees that and can stop waiting; then says it. */
export async function waitFor(connection: Connection, sessionId: string, name: string, show: () => unknown): Promise<void> {
  const options = { location: vscode.ProgressLocation.Notification, title: `Waiting for ${name}`, cancellable: true };
  const { results } = await vscode.window.withProgress(options, (_progress, token) =>
    connection.request("magy/child/wait", { sessionIds: [sessionId], until: "all", timeoutMs: DAY }, token),
  );
  const [one] = results;
  const said = one ? `${name}: ${one.child.state}. ${one.text.slice(0, TOAST)}` : `${name} has no result.`;
  const button = "Show Transcript";
  if ((await vscode.window.showInformationMessage(said, button)) === button) await show();
}

/** Closes an agent, after asking what becomes of what it does. */
export async function closeChild(connection: Connection, sessionId: string, name: string, working: boolean): Promise<void> {
  const [finish, stop] = working ? ["Let It Finish, Then Close", "Stop It and Close"] : ["Close", undefined];
  const detail = "It and all agents below it accept nothing more. Their transcripts stay.";
  const buttons = stop === undefined ? [finish] : [finish, stop];
  const chosen = await vscode.window.showWarningMessage(`Close ${name}?`, { modal: true, detail }, ...buttons);
  if (chosen === undefined) return;
  await connection.request("magy/child/close", { sessionId, mode: chosen === stop ? "cancel" : "finish" });
}
