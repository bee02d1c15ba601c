import * as vscode from "vscode";

const WHY =
  "Magy's agents read, change and run files on a machine, and VS Code in a browser alone has none. " +
  "Open the folder in the desktop application, or through a remote (SSH, container, WSL, code-server).";

/** VS Code without a machine behind it: every command says why it cannot do anything there. */
export function activate(context: vscode.ExtensionContext): void {
  const { contributes } = context.extension.packageJSON as {
    contributes: { commands: { command: string }[] };
  };
  for (const { command } of contributes.commands) {
    const say = () => vscode.window.showInformationMessage(WHY);
    context.subscriptions.push(vscode.commands.registerCommand(command, say));
  }
}
