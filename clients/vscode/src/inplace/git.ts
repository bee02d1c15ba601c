// What is used of the API that VS Code's own git extension gives to others (version 1).
import * as vscode from "vscode";

export interface Repository {
  readonly rootUri: vscode.Uri;
  readonly inputBox: { value: string };
  readonly state: {
    readonly indexChanges: readonly unknown[];
    readonly workingTreeChanges: readonly unknown[];
    readonly untrackedChanges?: readonly unknown[];
  };
}

interface GitApi {
  readonly repositories: readonly Repository[];
  getRepository(uri: vscode.Uri): Repository | null;
}

/** The repository of a source control, or of what is open. Throws with a sentence. */
export async function repositoryOf(root: vscode.Uri | undefined): Promise<Repository> {
  const extension = vscode.extensions.getExtension<{ getAPI(version: 1): GitApi }>("vscode.git");
  if (!extension) throw new Error("VS Code's git extension is turned off. Turn it on first.");
  const git = (extension.isActive ? extension.exports : await extension.activate()).getAPI(1);
  const around = root ?? vscode.window.activeTextEditor?.document.uri;
  const found = (around && git.getRepository(around)) ?? git.repositories[0];
  if (!found) throw new Error("No git repository is open.");
  return found;
}
