import * as vscode from "vscode";

/** What is selected in the terminal. An extension can see it only by way of the clipboard, which
 * is then as it was. Throws with a sentence if nothing is selected. */
export async function terminalSelection(): Promise<string> {
  if (!vscode.window.activeTerminal) throw new Error("No terminal is open.");
  const before = await vscode.env.clipboard.readText();
  await vscode.env.clipboard.writeText("");
  try {
    await vscode.commands.executeCommand("workbench.action.terminal.copySelection");
    const text = await vscode.env.clipboard.readText();
    if (text.trim() === "") throw new Error("Nothing is selected in the terminal.");
    return text;
  } finally {
    await vscode.env.clipboard.writeText(before);
  }
}
