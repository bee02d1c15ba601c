import * as vscode from "vscode";

/** Milliseconds that an extension may take to start with a file of its language, and what it then
 * starts itself, a language server, to find something. */
const ACTIVATION = 15_000;
export const STARTING = 4_000;

interface Manifest {
  activationEvents?: string[];
}

/** Opens a file, in no tab, and returns once the extensions for its language run; one that fails or takes too long is
 * not waited for. */
export async function opened(file: vscode.Uri): Promise<void> {
  const { languageId } = await vscode.workspace.openTextDocument(file);
  const events = [`onLanguage:${languageId}`, "onLanguage"];
  const starting = vscode.extensions.all.filter(
    ({ isActive, packageJSON }) =>
      !isActive && (packageJSON as Manifest).activationEvents?.some((event) => events.includes(event)),
  );
  const late = new Promise((resolve) => setTimeout(resolve, ACTIVATION));
  await Promise.race([late, Promise.allSettled(starting.map((one) => one.activate()))]);
}
