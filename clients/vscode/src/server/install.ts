import { spawn } from "node:child_process";
import { mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import * as vscode from "vscode";
import { configuration } from "./launcher";

const PYTHONS = ["python3", "python3.13", "python3.12", "python3.11", "python3.14"];
const NEW_ENOUGH = "import sys; sys.exit(sys.version_info < (3, 11))";

/**
 * Installs a server into an environment of the extension's own, once the person has agreed.
 * Returns whether it is there now. Throws an error that says what went wrong.
 */
export async function install(place: string, log: vscode.LogOutputChannel): Promise<boolean> {
  const source = configuration().get<string>("installSource", "") || (await askSource());
  if (!source) return false;
  const agreed = await vscode.window.showInformationMessage(
    "Install Magy's server?",
    {
      modal: true,
      detail:
        `Magy and the Python packages that it needs will be installed from ${source} into ${place}. ` +
        "Nothing else on this machine is changed; removing that directory removes it.",
    },
    "Install",
  );
  if (agreed !== "Install") return false;
  await vscode.window.withProgress(
    { location: vscode.ProgressLocation.Notification, title: "Installing Magy's server", cancellable: true },
    (progress, token) => steps(source, place, log, progress, token),
  );
  return true;
}

async function askSource(): Promise<string | undefined> {
  const chosen = await vscode.window.showOpenDialog({
    title: "Magy's wheel (magy-….whl), or a checkout of Magy",
    canSelectFiles: true,
    canSelectFolders: true,
    filters: { Wheels: ["whl"] },
    openLabel: "Install from This",
  });
  return chosen?.[0]?.fsPath;
}

async function steps(
  source: string,
  place: string,
  log: vscode.LogOutputChannel,
  progress: vscode.Progress<{ message: string }>,
  token: vscode.CancellationToken,
): Promise<void> {
  await mkdir(dirname(place), { recursive: true });
  await rm(place, { recursive: true, force: true });
  try {
    progress.report({ message: "making an environment" });
    const python = await newEnoughPython(log, token);
    await run([python, "-m", "venv", place], log, token);
    progress.report({ message: `installing ${source}` });
    const pip = [join(place, "bin", "python"), "-m", "pip", "install"];
    const quiet = ["--disable-pip-version-check", "--progress-bar", "off"];
    await run([...pip, ...quiet, "--", source], log, token);
  } catch (error) {
    await rm(place, { recursive: true, force: true });
    throw error;
  }
}

async function newEnoughPython(
  log: vscode.LogOutputChannel,
  token: vscode.CancellationToken,
): Promise<string> {
  for (const python of PYTHONS) {
    try {
      await run([python, "-c", NEW_ENOUGH], log, token);
      return python;
    } catch (error) {
      if (error instanceof vscode.CancellationError) throw error;
    }
  }
  throw new Error(
    "Magy needs Python 3.11 or newer, and none is on the PATH of VS Code. Install one, or install Magy " +
      "with `uv tool install --python 3.12`.",
  );
}

/** Runs a program to its end, its output in the log. */
function run(
  command: string[],
  log: vscode.LogOutputChannel,
  token: vscode.CancellationToken,
): Promise<void> {
  const [program = "", ...args] = command;
  log.info(`> ${command.join(" ")}`);
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
    const stop = token.onCancellationRequested(() => child.kill());
    let last = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        log.info(text.trimEnd());
        last = text.trim().split("\n").at(-1) ?? last;
      });
    }
    child.once("error", (error) => {
      stop.dispose();
      reject(error);
    });
    child.once("close", (code) => {
      stop.dispose();
      if (token.isCancellationRequested) reject(new vscode.CancellationError());
      else if (code === 0) resolve();
      else reject(new Error(`${program} failed: ${last || `status ${code}`}. The log has all of it.`));
    });
  });
}
