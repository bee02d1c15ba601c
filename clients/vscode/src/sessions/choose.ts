import * as vscode from "vscode";
import type { Magy } from "../magy";
import type { AgentInfo, ConfigOption } from "../wire/generated";
import { activeFolder } from "./service";

type OptionId = "agent" | "model" | "review" | "bypass" | "title";

const REVIEWS: Record<string, string> = {
  review: "Edits are made at once, and stay under review until you decide",
  propose: "Files stay as they are until you accept what is proposed",
  auto: "Edits are made and accepted",
};

/** Lets the person choose the value of an option of the current session. */
export async function choose(magy: Magy, id: "agent" | "model" | "review"): Promise<void> {
  const sessionId = await magy.sessions.ensure();
  const options = await optionsOf(magy, sessionId);
  const offered = options.find((one) => one.configId === id);
  if (!offered) throw new Error(`This session has no option ${id}.`);
  const about = id === "agent" ? await agentsBy(magy) : REVIEWS;
  const items: vscode.QuickPickItem[] = offered.options.map((label) => ({
    label,
    description: label === offered.currentValue ? "chosen" : "",
    detail: about[label],
  }));
  const another = "Another model…";
  if (id === "model") items.push({ label: another, description: "provider/model" });
  const choice = await vscode.window.showQuickPick(items, { title: `${offered.name} of this session` });
  const value = choice?.label === another ? await askModel(offered.currentValue) : choice?.label;
  if (value) await set(magy, sessionId, id, value);
}

/** Has questions of the current session answered by yes, or no more. */
export async function toggleBypass(magy: Magy): Promise<void> {
  const sessionId = await magy.sessions.ensure();
  const options = await optionsOf(magy, sessionId);
  const on = options.find((one) => one.configId === "bypass")?.currentValue === "on";
  if (!on) {
    const chosen = await vscode.window.showWarningMessage(
      "Answer this session's questions by yes?",
      { modal: true, detail: "Agents then run commands and change files unasked. Deny rules still hold." },
      "Answer by Yes",
    );
    if (!chosen) return;
  }
  await set(magy, sessionId, "bypass", on ? "off" : "on");
}

export async function set(magy: Magy, sessionId: string, configId: OptionId, value: string): Promise<void> {
  await magy.connection.request("magy/session/set_config_option", { sessionId, configId, value });
}

/** An agent and a task for it, below the current session. */
export async function askAgent(magy: Magy): Promise<string | undefined> {
  const { agents } = await magy.connection.request("magy/agent/list", { cwd: activeFolder()?.uri.fsPath });
  const items = agents
    .filter((agent) => agent.mode !== "primary")
    .map((agent) => ({ label: agent.name, detail: agent.description }));
  const choice = await vscode.window.showQuickPick(items, { title: "Which agent gets the task?" });
  return choice?.label;
}

async function optionsOf(magy: Magy, sessionId: string): Promise<ConfigOption[]> {
  const { summary } = magy.sessions;
  if (summary?.session.sessionId === sessionId) return summary.configOptions;
  return new Promise((resolve, reject) => {
    const listening = magy.sessions.subscribe(sessionId, {
      page: (page) => {
        listening.dispose();
        resolve(page.summary.configOptions);
      },
      update: () => undefined,
      failed: reject,
    });
  });
}

async function agentsBy(magy: Magy): Promise<Record<string, string>> {
  const cwd = magy.sessions.summary?.session.cwd;
  const { agents } = await magy.connection.request("magy/agent/list", { cwd });
  return Object.fromEntries(agents.map((agent: AgentInfo) => [agent.name, agent.description]));
}

function askModel(value: string): Thenable<string | undefined> {
  return vscode.window.showInputBox({
    title: "Model, as provider/model",
    value,
    validateInput: (text) => (/^[^/\s]+\/\S+$/.test(text) ? undefined : "Name it as provider/model."),
  });
}
