import * as vscode from "vscode";
import { registerCommands } from "../commands";
import type { Magy } from "../magy";
import type { ServerLauncher } from "../server/launcher";
import { agentCommands } from "./agentCommands";
import { AgentTree } from "./agentTree";
import { choose, toggleBypass } from "./choose";
import { showMenu } from "./menu";
import type { WindowSessions } from "./service";
import { sessionCommands } from "./sessionCommands";
import { SessionTree } from "./sessionTree";
import { showStatus } from "./status";

const MINUTE = 60_000;

/** The trees of sessions and agents, the status item, and their commands. */
export function registerSessions(
  context: vscode.ExtensionContext,
  magy: Magy,
  sessions: WindowSessions,
  launcher: ServerLauncher,
): void {
  const { connection, log, questions } = magy;
  const list = new SessionTree(connection, sessions);
  const agents = new AgentTree(connection, sessions);
  const view = vscode.window.createTreeView("magy.sessions", { treeDataProvider: list });
  const below = vscode.window.createTreeView("magy.agents", { treeDataProvider: agents });
  const badges = () => {
    const count = questions.open.length;
    const tooltip = count === 1 ? "1 question is open" : `${count} questions are open`;
    view.badge = count ? { value: count, tooltip } : undefined;
    const working = connection.alive ? [...agents.all].filter((child) => child.state === "running").length : 0;
    below.badge = working ? { value: working, tooltip: `${working} agents work` } : undefined;
    const current = sessions.current ?? "";
    void vscode.commands.executeCommand("setContext", "magy.child", current.includes("/"));
    void vscode.commands.executeCommand("setContext", "magy.session", current !== "");
  };
  badges();
  // What other editors do with a session is not told; and ages grow.
  const look = () => view.visible && list.refresh();
  const looking = setInterval(look, MINUTE);
  context.subscriptions.push(
    list,
    agents,
    view,
    below,
    showStatus(connection, sessions, agents),
    questions.onDidChange(badges),
    agents.onDidChange(badges),
    sessions.onDidChangeCurrent(badges),
    view.onDidChangeVisibility(look),
    new vscode.Disposable(() => clearInterval(looking)),
    connection.onDidChangeState((state) => {
      badges();
      void vscode.commands.executeCommand("setContext", "magy.server", state);
    }),
  );
  registerCommands(context, log, {
    ...sessionCommands(magy, sessions, launcher),
    ...agentCommands(magy, agents),
    "magy.olderSessions": () => list.more(),
    "magy.refreshSessions": () => list.refresh(),
    "magy.selectAgent": () => choose(magy, "agent"),
    "magy.selectModel": () => choose(magy, "model"),
    "magy.selectReviewMode": () => choose(magy, "review"),
    "magy.toggleBypass": () => toggleBypass(magy),
    "magy.showMenu": () => showMenu(magy),
  });
}
