import * as vscode from "vscode";
import type { TextBlock } from "../wire/generated";
import type { Chip } from "./messages";

const MOST_PROBLEMS = 200;
const MOST_OUTPUT = 50_000;
const SEVERITIES = ["error", "warning", "information", "hint"];

interface Named {
  chip: Chip;
  block: TextBlock;
}

/** What `@problems` stands for: all that the Problems panel lists. */
export function problems(): Named {
  const lines: string[] = [];
  for (const [uri, found] of vscode.languages.getDiagnostics()) {
    if (uri.scheme !== "file") continue;
    const path = vscode.workspace.asRelativePath(uri);
    for (const one of found) {
      const source = one.source ? ` (${one.source})` : "";
      lines.push(`${path}:${one.range.start.line + 1}: ${SEVERITIES[one.severity]}: ${one.message}${source}`);
    }
  }
  const left = lines.length - MOST_PROBLEMS;
  const shown = left > 0 ? [...lines.slice(0, MOST_PROBLEMS), `… and ${left} more`] : lines;
  const text = lines.length ? `Problems that the editor shows:\n${shown.join("\n")}` : "The editor shows no problems.";
  const label = lines.length === 1 ? "1 problem" : `${lines.length} problems`;
  return named("problems", label, text);
}

/** What `@terminal` stands for: what is selected in the terminal, or else the last command there. */
export async function terminalText(): Promise<Named> {
  const selected = await terminalSelection();
  if (selected) return named("terminal", `terminal: ${selected.split("\n").length} selected lines`, `From the terminal:\n${selected}`);
  if (last) return named("terminal", `terminal: ${shortened(last.command)}`, `From the terminal:\n$ ${last.command}\n${cut(last.output)}`);
  return named("terminal", "terminal: nothing is selected there", "Nothing is selected in the terminal.");
}

function named(kind: "problems" | "terminal", label: string, text: string): Named {
  return { chip: { id: kind, kind, label, default: true }, block: { type: "text", text } };
}

/** There is no other stable way to the selection than the clipboard, which is put back. */
async function terminalSelection(): Promise<string> {
  if (!vscode.window.activeTerminal) return "";
  const before = await vscode.env.clipboard.readText();
  const mark = `magy ${Date.now()}`;
  await vscode.env.clipboard.writeText(mark);
  try {
    await vscode.commands.executeCommand("workbench.action.terminal.copySelection");
    const now = await vscode.env.clipboard.readText();
    return now === mark ? "" : cut(now.trimEnd());
  } finally {
    await vscode.env.clipboard.writeText(before);
  }
}

let last: { command: string; output: string } | undefined;

/** The parts of VS Code 1.93's shell integration that are used; older ones have none. */
interface ShellExecution {
  commandLine: { value: string };
  read(): AsyncIterable<string>;
}

interface ShellWindow {
  onDidStartTerminalShellExecution?: vscode.Event<{ execution: ShellExecution }>;
}

/** Remembers the last command of a terminal and what it wrote. */
export function watchTerminals(): vscode.Disposable {
  const { onDidStartTerminalShellExecution: began } = vscode.window as ShellWindow;
  return began?.(({ execution }) => void follow(execution)) ?? new vscode.Disposable(() => undefined);
}

async function follow(execution: ShellExecution): Promise<void> {
  const mine = { command: execution.commandLine.value, output: "" };
  last = mine;
  for await (const some of execution.read()) {
    mine.output = (mine.output + some).slice(-2 * MOST_OUTPUT);
  }
}

/** The text without terminal sequences, and its end if it is long. */
function cut(text: string): string {
   
  const plain = text.replace(/\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]/g, "").replace(/\r\n?/g, "\n");
  return plain.length > MOST_OUTPUT ? `…\n${plain.slice(-MOST_OUTPUT)}` : plain;
}

function shortened(text: string): string {
  return text.length > 40 ? `${text.slice(0, 39)}…` : text;
}
