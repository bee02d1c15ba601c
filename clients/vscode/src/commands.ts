import * as vscode from "vscode";
import { ServerGone } from "./wire/errors";

/** Why something could not be done, as a sentence for the person. */
export function sentence(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Registers commands whose failures are logged and shown to the person. */
export function registerCommands(
  context: vscode.ExtensionContext,
  log: vscode.LogOutputChannel,
  // The arguments of a command are what its callers pass: menus, key bindings, other parts.
  commands: Record<string, (...args: never[]) => unknown>,
): void {
  for (const [id, run] of Object.entries(commands)) {
    context.subscriptions.push(
      vscode.commands.registerCommand(id, async (...args: never[]) => {
        try {
          return await run(...args);
        } catch (error) {
          if (error instanceof vscode.CancellationError) return undefined;
          if (error instanceof ServerGone) return undefined; // who watches the connection tells that
          log.error(`${id}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
          void tell("error", sentence(error));
          return undefined;
        }
      }),
    );
  }
}

/** A button below a message: its title, and the command that it runs. */
export interface Button {
  title: string;
  command: string;
  arguments?: unknown[];
}

/** Shows a message without waiting for the person; a button that they choose runs its command. */
export async function tell(
  severity: "info" | "warning" | "error",
  message: string,
  ...buttons: Button[]
): Promise<void> {
  const show = {
    info: vscode.window.showInformationMessage,
    warning: vscode.window.showWarningMessage,
    error: vscode.window.showErrorMessage,
  }[severity];
  const titles = buttons.map((button) => button.title);
  const chosen = await show(message, ...titles);
  const button = buttons.find((one) => one.title === chosen);
  if (button) await vscode.commands.executeCommand(button.command, ...(button.arguments ?? []));
}
