import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import type { Magy } from "../magy";
import type { Child, ChildWaited } from "../wire/generated";
import type { AgentTree } from "./agentTree";
import { askAgent } from "./choose";
import { childRow } from "./rows";
import { open } from "./sessionCommands";

/** Commands about agents below the current session; each takes the agent of a row, or asks which. */
export function agentCommands(
  magy: Magy,
  tree: AgentTree,
): Record<string, (child?: Child) => unknown> {
  const { connection } = magy;
  const which = (child: Child | undefined, title: string) => child ?? pick(tree, title);
  return {
    "magy.spawnAgent": (child) => spawn(magy, child),
    "magy.openAgent": async (child) => {
      const chosen = await which(child, "Show Transcript of Agent");
      if (chosen) await open(magy, chosen.sessionId);
    },
    "magy.openParent": async () => {
      const current = magy.sessions.current ?? "";
      const parent = current.slice(0, Math.max(0, current.lastIndexOf("/")));
      if (!parent) throw new Error("The session that is shown has no parent.");
      await open(magy, parent);
    },
    "magy.messageAgent": async (child) => {
      const chosen = await which(child, "Message Agent");
      const text = chosen && (await askText(`Message to ${chosen.name || chosen.agent}`));
      if (!text) return;
      const prompt = [{ type: "text" as const, text }];
      const message = { sessionId: chosen.sessionId, requestKey: randomUUID(), prompt };
      await connection.request("magy/child/send", message);
    },
    "magy.waitForAgent": async (child) => {
      const chosen = await which(child, "Wait for Agent");
      if (chosen) await wait(magy, chosen);
    },
    "magy.stopAgent": async (child) => {
      const chosen = await which(child, "Stop Agent");
      if (chosen) await connection.request("magy/session/cancel", { sessionId: chosen.sessionId });
    },
    "magy.closeAgent": async (child) => {
      const chosen = await which(child, "Close Agent");
      const mode = chosen && (await askMode(chosen));
      if (mode) await connection.request("magy/child/close", { sessionId: chosen.sessionId, mode });
    },
    "magy.toggleClosedAgents": () => tree.toggleClosed(),
  };
}

async function spawn(magy: Magy, below: Child | undefined): Promise<void> {
  const parentSessionId = below?.sessionId ?? (await magy.sessions.ensure());
  const agent = await askAgent(magy);
  const text = agent && (await askText(`Task for ${agent}`));
  if (!text) return;
  const prompt = [{ type: "text" as const, text }, ...selection()];
  const requestKey = `v-${randomUUID()}`;
  await magy.connection.request("magy/child/spawn", { parentSessionId, requestKey, agent, prompt });
}

/** What is selected in the active editor goes along. */
function selection() {
  const editor = vscode.window.activeTextEditor;
  if (!editor || editor.selection.isEmpty || editor.document.uri.scheme !== "file") return [];
  const { document } = editor;
  const [from, to] = [editor.selection.start.line + 1, editor.selection.end.line + 1];
  const uri = `${document.uri.toString()}#L${from}-L${to}`;
  const text = document.getText(editor.selection);
  return [{ type: "resource" as const, resource: { uri, text } }];
}

async function wait(magy: Magy, child: Child): Promise<void> {
  const name = child.name || child.agent;
  const waited = await vscode.window.withProgress<ChildWaited>(
    { location: vscode.ProgressLocation.Notification, title: `Waiting for ${name}`, cancellable: true },
    (_, token) => {
      const { sessionId, parentSessionId } = child;
      const asked = { parentSessionId, sessionIds: [sessionId] };
      return magy.connection.request("magy/child/wait", asked, token);
    },
  );
  const [result] = waited.results;
  const said = waited.timedOut ? "still works" : (result?.text.trim().split("\n")[0] ?? "is idle");
  const show = "Show Transcript";
  if ((await vscode.window.showInformationMessage(`${name}: ${said}`, show)) === show) {
    await open(magy, child.sessionId);
  }
}

async function pick(tree: AgentTree, title: string): Promise<Child | undefined> {
  const items = [...tree.all].map((child) => {
    const { label, description, icon } = childRow(child);
    return { label: `$(${icon}) ${label}`, description, child };
  });
  const placeHolder = items.length ? undefined : "No agents are below this session";
  return (await vscode.window.showQuickPick(items, { title, placeHolder }))?.child;
}

async function askMode(child: Child): Promise<"finish" | "cancel" | undefined> {
  const [finish, stop] = ["Let It Finish, Then Close", "Stop It and Close"];
  const chosen = await vscode.window.showWarningMessage(
    `Close ${child.name || child.agent}?`,
    { modal: true, detail: "It and all agents below it accept nothing more. Their transcripts stay." },
    finish,
    stop,
  );
  if (!chosen) return undefined;
  return chosen === stop ? "cancel" : "finish";
}

async function askText(title: string): Promise<string | undefined> {
  const text = await vscode.window.showInputBox({ title, ignoreFocusOut: true });
  return text?.trim() ? text : undefined;
}
