import * as vscode from "vscode";
import type { Connection, ConnectionState } from "../connection";
import type { Sessions } from "../magy";
import type { AgentTree } from "./agentTree";
import { statusOf, suggestionsOf } from "./rows";

const WORDS: Record<ConnectionState, string> = {
  stopped: "$(sparkle) Magy",
  missing: "$(warning) Magy: no server",
  starting: "$(loading~spin) Magy starts",
  running: "$(sparkle) Magy",
  silent: "$(warning) Magy does not answer",
  dead: "$(error) Magy has stopped",
};

/** The item in the status bar: the model, what it costs, and what runs. */
export function showStatus(connection: Connection, sessions: Sessions, agents: AgentTree): vscode.Disposable {
  const item = vscode.window.createStatusBarItem("magy.status", vscode.StatusBarAlignment.Right, 90);
  item.name = "Magy";
  item.command = "magy.showMenu";
  let suggestions = "";
  const show = () => {
    const { summary } = sessions;
    if (connection.state === "running" && summary) {
      const { text, tooltip: about } = statusOf(summary, agents.all);
      const tooltip = [about, suggestions].filter(Boolean).join("\n\n");
      item.text = text;
      item.tooltip = new vscode.MarkdownString(tooltip, true);
      item.accessibilityInformation = { label: `Magy. ${tooltip.replaceAll("*", "")}` };
    } else {
      item.text = WORDS[connection.state];
      item.tooltip = connection.problem || "Magy: click for what can be done";
      item.accessibilityInformation = undefined;
    }
    const wrong = ["missing", "silent", "dead"].includes(connection.state);
    item.backgroundColor = wrong ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
  };
  show();
  item.show();
  return vscode.Disposable.from(
    item,
    connection.onDidChangeState(show),
    connection.on("magy/completion/changed", (status) => {
      suggestions = suggestionsOf(status);
      show();
    }),
    sessions.onDidChangeSummary(show),
    agents.onDidChange(show),
  );
}
