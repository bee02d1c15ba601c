import * as vscode from "vscode";
import type { Connection } from "../connection";
import type { Child } from "../wire/generated";

const PAGE = 200;

/** All children of the tree that a session is of, the closed ones too. */
export async function childrenOf(connection: Connection, sessionId: string): Promise<Child[]> {
  const [root = sessionId] = sessionId.split("/");
  const children: Child[] = [];
  let cursor: string | null = null;
  do {
    const page: { children: Child[]; nextCursor: string | null } = await connection.request("magy/child/list", {
      parentSessionId: root, includeClosed: true, limit: PAGE, cursor,
    });
    children.push(...page.children);
    cursor = page.nextCursor;
  } while (cursor !== null);
  return children;
}

/** Waits for the result of a child, where the person sees that and can stop waiting; then says it. */
export async function waitFor(connection: Connection, sessionId: string, name: string, show: () => void): Promise<void> {
  const options = { location: vscode.ProgressLocation.Notification, title: `Waiting for ${name}`, cancellable: true };
  const result = await vscode.window.withProgress(options, (_progress, token) =>
    connection.request("magy/child/wait", { sessionIds: [sessionId], until: "all", timeoutMs: 86_400_000 }, token),
  );
  const [one] = result.results;
  const said = one ? `${name}: ${one.child.state}. ${one.text.slice(0, 300)}` : `${name} has no result.`;
  if ((await vscode.window.showInformationMessage(said, "Show")) === "Show") show();
}

/** Closes a child, after asking what becomes of what it does. */
export async function closeChild(connection: Connection, sessionId: string, name: string, works: boolean): Promise<void> {
  let mode: "finish" | "cancel" = "finish";
  if (works) {
    const finish = "When it has finished";
    const chosen = await vscode.window.showWarningMessage(`Close ${name}? It accepts nothing more then; its transcript stays.`, { modal: true }, finish, "Stop it and close");
    if (chosen === undefined) return;
    mode = chosen === finish ? "finish" : "cancel";
  }
  await connection.request("magy/child/close", { sessionId, mode });
}
