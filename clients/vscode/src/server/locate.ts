import * as vscode from "vscode";
import { configuration, type ServerLauncher } from "./launcher";

const NOT_THERE = "No program that may be run is there, and no magy is in it";

/** Has the person say where the server is, and keeps that as the setting `magy.path`. */
export async function locate(launcher: ServerLauncher): Promise<void> {
  const given = await vscode.window.showInputBox({
    title: "Where Magy's Server Is",
    prompt: "The program magy, or what it is in: a checkout of Magy after make setup, or a Python environment",
    placeHolder: "~/src/magy",
    value: configuration().get<string[]>("path", [])[0],
    ignoreFocusOut: true,
    validateInput: async (text) => (text.trim() === "" || (await launcher.programAt(text.trim())) ? undefined : NOT_THERE),
  });
  const path = given?.trim() && (await launcher.programAt(given.trim()));
  if (!path) return;
  // A trusted folder that has the setting has the last word.
  const ofFolder = vscode.workspace.isTrusted && configuration().inspect("path")?.workspaceValue !== undefined;
  const { Global, Workspace } = vscode.ConfigurationTarget;
  // Whoever watches the setting starts what it names.
  await configuration().update("path", [path], ofFolder ? Workspace : Global);
}
