import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import type { Magy } from "../magy";
import type { Child } from "../wire/generated";
import type { AgentTree } from "./agentTree";
import { closeChild, spawnChild, waitFor } from "./children";
import { askAgent } from "./choose";
import { childName, childRow, isOpen, works } from "./rows";
import { acceptRuling, deliberate, showEmotionalLog, showRuling } from "./magi";
import { open } from "./sessionCommands";

/** Commands about agents below the current session; each takes the agent of a row, or asks which. */
export function agentCommands(
  magy: Magy,
  tree: AgentTree,
): Record<string, (child?: Child) => unknown> {
  const { connection } = magy;
  const which = (child: Child | undefined, title: string, fits: (child: Child) => boolean = () => true) =>
    child ?? pick(tree, title, fits);
  return {
    "magy.spawnAgent": (child) => spawn(magy, child, false),
    "magy.spawnAgentOnBranch": (child) => spawn(magy, child, true),
    "magy.deliberate": () => deliberate(magy),
    "magy.showRuling": () => showRuling(magy),
    "magy.acceptRuling": () => acceptRuling(magy),
    "magy.showEmotionalLog": () => showEmotionalLog(magy),
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
      const chosen = await which(child, "Message Agent", isOpen);
      const text = chosen && (await askText(`Message to ${childName(chosen)}`));
      if (!text) return;
      const prompt = [{ type: "text" as const, text }];
      const message = { sessionId: chosen.sessionId, requestKey: randomUUID(), prompt };
      await connection.request("magy/child/send", message);
    },
    "magy.waitForAgent": async (child) => {
      const chosen = await which(child, "Wait for Agent", works);
      if (chosen) await waitFor(connection, chosen.sessionId, childName(chosen), () => open(magy, chosen.sessionId));
    },
    "magy.stopAgent": async (child) => {
      const chosen = await which(child, "Stop Agent", works);
      if (chosen) await connection.request("magy/session/cancel", { sessionId: chosen.sessionId });
    },
    "magy.closeAgent": async (child) => {
      const chosen = await which(child, "Close Agent", isOpen);
      if (chosen) await closeChild(connection, chosen.sessionId, childName(chosen), works(chosen));
    },
    "magy.toggleClosedAgents": () => tree.toggleClosed(),
  };
}

/** `worktree`: it works on a git branch of its own. */
async function spawn(magy: Magy, below: Child | undefined, worktree: boolean): Promise<void> {
  const parentSessionId = below?.sessionId ?? (await magy.sessions.ensure());
  const agent = await askAgent(magy);
  const text = agent && (await askText(`Task for ${agent}${worktree ? ", on a Branch of Its Own" : ""}`));
  if (!text) return;
  await spawnChild(magy.connection, { parentSessionId, agent, worktree, task: text, along: selection() });
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

/** Asks for one of those that fit, the latest first. One that is begun while it asks is in the list, too. */
async function pick(tree: AgentTree, title: string, fits: (child: Child) => boolean): Promise<Child | undefined> {
  const box = vscode.window.createQuickPick<vscode.QuickPickItem & { child: Child }>();
  box.title = title;
  const fill = () => {
    const chosen = box.activeItems[0]?.child.sessionId;
    box.items = [...tree.all].filter(fits).reverse().map((child) => {
      const { label, description, icon } = childRow(child, true);
      return { label: `$(${icon}) ${label}`, description, child };
    });
    const same = box.items.find(({ child }) => child.sessionId === chosen);
    if (same) box.activeItems = [same];
    box.placeholder = box.items.length ? "" : "No agent below this session is fit for this";
  };
  fill();
  const changes = tree.onDidChange(fill);
  const chosen = new Promise<Child | undefined>((resolve) => {
    box.onDidAccept(() => {
      const [row] = box.selectedItems;
      if (row) resolve(row.child);
    });
    box.onDidHide(() => resolve(undefined));
  });
  box.show();
  try {
    return await chosen;
  } finally {
    changes.dispose();
    box.dispose();
  }
}

async function askText(title: string): Promise<string | undefined> {
  const text = await vscode.window.showInputBox({ title, ignoreFocusOut: true });
  return text?.trim() ? text : undefined;
}
