import * as vscode from "vscode";
import { tell } from "../commands";
import type { Magy } from "../magy";
import type { ConfigOption } from "../wire/generated";
import { pickAsTheyCome } from "./picking";
import { activeFolder } from "./service";

type OptionId = "agent" | "model" | "review" | "bypass" | "title";

const REVIEWS: Record<string, string> = {
  review: "Edits are made at once, and stay under review until you decide",
  propose: "Files stay as they are until you accept what is proposed",
  auto: "Edits are made and accepted",
};

const NAMES = { agent: "Agent", model: "Model", review: "What happens to edits" };
const ANOTHER = "Another model…";
const MODEL = /^[^/\s]+\/\S+$/;

interface Offer extends vscode.QuickPickItem {
  /** Undefined: no value, but a row that says something. */
  value?: string;
}

/** Lets the person choose the value of an option of the current session. */
export async function choose(magy: Magy, id: "agent" | "model" | "review"): Promise<void> {
  const rows = { agent: agentRows, model: modelRows, review: reviewRows }[id](magy);
  const picked = await pickAsTheyCome(`${NAMES[id]} of this session`, rows);
  if (!picked) return;
  const { row, typed } = picked;
  if (row.value === undefined) return lacks(row);
  const value = row.value === ANOTHER ? await askModel(typed) : row.value;
  if (value) await set(magy, await magy.sessions.ensure(), id, value);
}

async function* agentRows(magy: Magy): AsyncGenerator<Offer[]> {
  const option = await optionOf(magy, "agent");
  yield rowsOf(option);
  yield rowsOf(option, await agentsBy(magy));
}

async function* reviewRows(magy: Magy): AsyncGenerator<Offer[]> {
  yield rowsOf(await optionOf(magy, "review"), REVIEWS);
}

/** Those that are known beforehand; then what each provider says that it has, or why it does not. */
async function* modelRows(magy: Magy): AsyncGenerator<Offer[]> {
  const option = await optionOf(magy, "model");
  const another: Offer = { label: ANOTHER, description: "provider/model", value: ANOTHER, alwaysShow: true };
  const known = rowsOf(option);
  yield [...known, another];
  const { providers } = await magy.connection.request("magy/model/list", { cwd: folderOfCurrent(magy) });
  const rows = providers.flatMap(({ provider, models, problem }) => [
    { label: provider, kind: vscode.QuickPickItemKind.Separator },
    ...(problem ? [{ label: `$(warning) ${provider}`, detail: problem }] : []),
    ...models.filter((model) => !option.options.includes(model)).map((model) => rowOf(model, option)),
  ]);
  yield [...known, another, ...rows];
}

function rowsOf(option: ConfigOption, about: Record<string, string> = {}): Offer[] {
  return option.options.map((value) => ({ ...rowOf(value, option), detail: about[value] }));
}

function rowOf(value: string, { currentValue }: ConfigOption): Offer {
  return { label: value, description: value === currentValue ? "chosen" : "", value };
}

/** Says why a provider's models are not to be had, and what may help. */
function lacks({ detail = "" }: Offer): void {
  const key = { title: "Set API Key…", command: "magy.setApiKey" };
  void tell("warning", detail, key, { title: "Run Doctor", command: "magy.runDoctor" });
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

/** Which agent gets a task below the current session. */
export async function askAgent(magy: Magy): Promise<string | undefined> {
  const choice = await vscode.window.showQuickPick(tasked(magy), { title: "Which agent gets the task?" });
  return choice?.label;
}

async function tasked(magy: Magy): Promise<vscode.QuickPickItem[]> {
  const { agents } = await magy.connection.request("magy/agent/list", { cwd: folderOfCurrent(magy) });
  return agents
    .filter((agent) => agent.mode !== "primary")
    .map((agent) => ({ label: agent.name, detail: agent.description }));
}

/** An option of the current session, or as a session that is made now would begin with it. */
async function optionOf(magy: Magy, id: OptionId): Promise<ConfigOption> {
  const { current } = magy.sessions;
  const options = current === undefined ? await optionsOfNew(magy) : await optionsOf(magy, current);
  const found = options.find((one) => one.configId === id);
  if (!found) throw new Error(`This session has no option ${id}.`);
  return found;
}

async function optionsOfNew(magy: Magy): Promise<ConfigOption[]> {
  const cwd = activeFolder()?.uri.fsPath;
  return (await magy.connection.request("magy/session/options", { cwd })).configOptions;
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

export function folderOfCurrent(magy: Magy): string | undefined {
  return magy.sessions.summary?.session.cwd ?? activeFolder()?.uri.fsPath;
}

async function agentsBy(magy: Magy): Promise<Record<string, string>> {
  const { agents } = await magy.connection.request("magy/agent/list", { cwd: folderOfCurrent(magy) });
  return Object.fromEntries(agents.map((agent) => [agent.name, agent.description]));
}

/** What was typed in the list counts, if it names a model. */
async function askModel(typed: string): Promise<string | undefined> {
  if (MODEL.test(typed)) return typed;
  return vscode.window.showInputBox({
    title: "Model, as provider/model",
    value: typed,
    validateInput: (text) => (MODEL.test(text) ? undefined : "Name it as provider/model."),
  });
}
