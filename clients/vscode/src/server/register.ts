import * as vscode from "vscode";
import { type Button, registerCommands, sentence, tell } from "../commands";
import { type Connection, PROTOCOL } from "../connection";
import { link, unlinked } from "../questions/words";
import { ServerGone } from "../wire/errors";
import { Doctor } from "./doctor";
import { misfit } from "./find";
import { install } from "./install";
import type { Keys } from "./keys";
import { configuration, type ServerLauncher } from "./launcher";
import { locate } from "./locate";
import { watchInterpreter } from "./python";
import { AT_START } from "./settings";

const RESTART: Button = { title: "Restart Server", command: "magy.restartServer" };
const LOG: Button = { title: "Show Log", command: "magy.showLog" };
const DOCTOR: Button = { title: "Run Doctor", command: "magy.runDoctor" };
const INSTALL: Button = { title: "Install…", command: "magy.installServer" };
const LOCATE: Button = { title: "Say Where It Is…", command: "magy.locateServer" };

/** Milliseconds in which VS Code has learnt what ticks the steps of a walkthrough that was opened. */
const LEARNT = 1_000;

/** What is about the server as a whole: its life, its keys, the doctor, trust. */
export function registerServer(
  context: vscode.ExtensionContext,
  connection: Connection,
  launcher: ServerLauncher,
  keys: Keys,
  log: vscode.LogOutputChannel,
): void {
  const { version } = context.extension.packageJSON as { version: string };
  const doctor = new Doctor(context, connection, launcher, version);
  registerCommands(context, log, {
    "magy.restartServer": () => connection.restart(),
    "magy.stopServer": () => connection.stop(),
    "magy.showLog": () => log.show(),
    "magy.runDoctor": () => doctor.run(),
    "magy.installServer": async () => {
      if (await install(launcher.own, log)) await connection.restart();
    },
    "magy.locateServer": () => locate(launcher),
    "magy.setApiKey": async () => {
      const done = await keys.ask();
      if (!done) return;
      await anew(connection, done);
      await vscode.commands.executeCommand("magy.focusTranscript");
    },
    "magy.trustProject": () => trustProjects(connection),
  });
  context.subscriptions.push(
    connection.onDidChangeState((state) => {
      if (state === "dead") void tellForNow(connection, connection.problem, RESTART, LOG, DOCTOR);
      if (state === "missing") void tell("warning", connection.problem, INSTALL, LOCATE);
      if (state === "silent") void tellForNow(connection, "Magy's server does not answer.", RESTART, LOG);
      if (state === "running") {
        const wrong = misfit(connection.about, { version, protocol: PROTOCOL });
        if (wrong) void tell("warning", wrong, RESTART);
      }
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => void quietly(log, connection.restart())),
    followSettings(connection, log),
    tickWalkthrough(connection),
  );
  void quietly(log, followPython(context, connection, launcher));
}

/** Says that the server is of no use now, as long as that is so: only a progress can be taken back. */
async function tellForNow(connection: Connection, problem: string, ...buttons: Button[]): Promise<void> {
  const links = buttons.map(({ title, command }) => link(title, command));
  const title = `${unlinked(problem)} ${links.join(" · ")}`;
  await vscode.window.withProgress(
    { location: vscode.ProgressLocation.Notification, title, cancellable: true },
    (_, closed) =>
      new Promise<void>((resolve) => {
        const listening = [connection.onDidChangeState(() => end()), closed.onCancellationRequested(() => end())];
        const end = () => {
          vscode.Disposable.from(...listening).dispose();
          resolve();
        };
      }),
  );
}

/**
 * Has the first step of the walkthrough ticked while that is open. VS Code learns only then what ticks a step, and never
 * ticks one for what was so before.
 */
function tickWalkthrough(connection: Connection): vscode.Disposable {
  const say = (seen: boolean) => void vscode.commands.executeCommand("setContext", "magy.serverIsSeen", seen);
  let late: NodeJS.Timeout | undefined;
  const look = () => {
    // Of the page with walkthroughs VS Code says only that it is none of the usual tabs.
    const open = vscode.window.tabGroups.all.some((group) => group.activeTab && group.activeTab.input === undefined);
    clearTimeout(late);
    if (open && connection.state === "running") late = setTimeout(() => say(true), LEARNT);
    else say(false);
  };
  return vscode.Disposable.from(
    connection.onDidChangeState(look),
    vscode.window.tabGroups.onDidChangeTabs(look),
    new vscode.Disposable(() => clearTimeout(late)),
  );
}

/**
 * Says once, until the next start, that settings were changed which count only then. One that says where the server is
 * starts the server that was not found.
 */
function followSettings(connection: Connection, log: vscode.LogOutputChannel): vscode.Disposable {
  let told = false;
  let before = startingWith();
  return vscode.Disposable.from(
    connection.onDidChangeState((state) => {
      if (state !== "starting") return;
      told = false;
      before = startingWith();
    }),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (connection.state === "missing" && event.affectsConfiguration("magy.path")) {
        return void quietly(log, connection.start());
      }
      // Trust in the folder is such a change, too, whatever it sets.
      if (startingWith() === before || told || connection.state === "stopped") return;
      told = true;
      void tell("info", "The changed settings count when Magy's server starts again.", RESTART);
    }),
  );
}

/** What counts when the server starts. */
function startingWith(): string {
  return JSON.stringify(AT_START.map((name) => configuration().get(name)));
}

/** Starts the server, unless the person has said that it waits for a command. */
export function begin(connection: Connection, log: vscode.LogOutputChannel): void {
  if (!vscode.workspace.workspaceFolders?.length) return;
  if (configuration().get<boolean>("autoStart", true)) void quietly(log, connection.start());
}

async function quietly(log: vscode.LogOutputChannel, work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof ServerGone)) log.error(sentence(error));
  }
}

/** Starts the server again for something new, at once if that interrupts nothing. */
async function anew(connection: Connection, done: string): Promise<void> {
  if (connection.state !== "running") return connection.restart();
  const { sessions } = await connection.request("magy/session/list", {});
  if (sessions.some((one) => one.state === "running")) {
    return void tell("info", `${done} It counts when the server starts again; an agent is at work.`, RESTART);
  }
  await connection.restart();
  void tell("info", done);
}

/** Another interpreter may bring another server. */
async function followPython(
  context: vscode.ExtensionContext,
  connection: Connection,
  launcher: ServerLauncher,
): Promise<void> {
  const changed = async () => {
    const found = await launcher.look();
    if ("missing" in found || found.path === launcher.program?.path) return;
    if (connection.state === "missing") await connection.start();
    else if (connection.state === "running") {
      await tell("info", `The folder's environment has a Magy of its own: ${found.path}`, RESTART);
    }
  };
  context.subscriptions.push(await watchInterpreter(() => void changed().catch(() => undefined)));
}

/** Asks for each folder whether its own Magy files may do more than restrict. */
async function trustProjects(connection: Connection): Promise<void> {
  if (!vscode.workspace.isTrusted) {
    await vscode.commands.executeCommand("workbench.trust.manage");
    return;
  }
  for (const folder of vscode.workspace.workspaceFolders ?? []) {
    const root = folder.uri.fsPath;
    const { trusted, ignored } = await connection.request("magy/workspace/trust", { root });
    const say = trusted ? "Trust No More" : "Trust";
    const chosen = await vscode.window.showInformationMessage(
      trusted ? `Magy trusts ${folder.name}.` : `Trust the Magy files of ${folder.name}?`,
      { modal: true, detail: trustDetail(trusted, ignored) },
      say,
    );
    if (chosen === say) await connection.request("magy/workspace/trust", { root, trusted: !trusted });
  }
}

function trustDetail(trusted: boolean, ignored: readonly string[]): string {
  if (trusted) return "It asks again when one of its Magy files changes.";
  if (!ignored.length) return "It has no Magy files that do more than restrict.";
  return `Its magy.toml, agents and skills then count as they are now. So far Magy ignores:\n\n${ignored.join("\n")}`;
}
