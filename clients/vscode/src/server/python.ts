import * as vscode from "vscode";

/** Of the API of the extension ms-python.vscode-python-envs, what is used. */
interface Environments {
  getEnvironment(scope: vscode.Uri | undefined): Promise<
    { execInfo?: { run?: { executable?: string } } } | undefined
  >;
  onDidChangeEnvironment?: vscode.Event<unknown>;
}

/** Of the API of the extension ms-python.python, what is used. */
interface Python {
  environments?: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { path: string };
    resolveEnvironment(path: { path: string }): Promise<
      { executable?: { uri?: vscode.Uri } } | undefined
    >;
    onDidChangeActiveEnvironmentPath?: vscode.Event<unknown>;
  };
}

/** Milliseconds that these extensions may take; then Magy looks elsewhere. */
const PATIENCE = 5_000;

/** The Python interpreter that is chosen for a folder, if an extension knows one. */
export async function interpreter(folder: vscode.Uri | undefined): Promise<string | undefined> {
  const late = new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), PATIENCE));
  return Promise.race([late, known(folder).catch(() => undefined)]);
}

async function known(folder: vscode.Uri | undefined): Promise<string | undefined> {
  const newer = await api<Environments>("ms-python.vscode-python-envs");
  const run = (await newer?.getEnvironment(folder))?.execInfo?.run?.executable;
  if (run) return run;
  const older = (await api<Python>("ms-python.python"))?.environments;
  if (!older) return undefined;
  const found = await older.resolveEnvironment(older.getActiveEnvironmentPath(folder));
  return found?.executable?.uri?.fsPath;
}

/** Calls back when another interpreter was chosen. */
export async function watchInterpreter(changed: () => void): Promise<vscode.Disposable> {
  const newer = await api<Environments>("ms-python.vscode-python-envs");
  const older = (await api<Python>("ms-python.python"))?.environments;
  const events = [newer?.onDidChangeEnvironment, older?.onDidChangeActiveEnvironmentPath];
  return vscode.Disposable.from(...events.flatMap((event) => (event ? [event(changed)] : [])));
}

async function api<T>(id: string): Promise<T | undefined> {
  return vscode.extensions.getExtension<T>(id)?.activate();
}
