import * as vscode from "vscode";
import type { Connection } from "../connection";
import type { Completion } from "../wire/generated";

/** Milliseconds that VS Code's own symbols may take; the server's answer does not wait longer. */
const PATIENCE = 400;
const MOST_SYMBOLS = 20;

const OWN: readonly Completion[] = [
  { label: "problems", text: "@problems", kind: "command", detail: "what the Problems panel lists" },
  { label: "terminal", text: "@terminal", kind: "command", detail: "what is selected in the terminal, or its last command" },
];

/** What completes a prompt: the server's files, symbols, skills, agents, actions; the editor's symbols. */
export async function completions(
  connection: Connection,
  before: string,
  where: { sessionId?: string; cwd?: string },
): Promise<{ prefix: string; items: Completion[]; incomplete: boolean }> {
  const word = /(?:^|[^\w.@/\\+-])@([\w.]*)$/.exec(before)?.[1];
  const [server, symbols] = await Promise.all([
    connection.request("magy/prompt/complete", { before, ...where }),
    word !== undefined && word.length > 1 ? workspaceSymbols(word) : [],
  ]);
  if (word === undefined) return { prefix: server.prefix, items: server.items, incomplete: server.incomplete };
  const own = OWN.filter((one) => one.label.startsWith(word));
  const known = new Set(server.items.map((one) => one.text));
  const items = [...own, ...server.items, ...symbols.filter((one) => !known.has(one.text))];
  return { prefix: server.prefix || `@${word}`, items: items.slice(0, 60), incomplete: server.incomplete };
}

async function workspaceSymbols(word: string): Promise<Completion[]> {
  const found = vscode.commands.executeCommand<vscode.SymbolInformation[] | undefined>("vscode.executeWorkspaceSymbolProvider", word);
  const late = new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), PATIENCE));
  const symbols = (await Promise.race([found, late]).then((all) => all, () => undefined)) ?? [];
  return symbols.filter((one) => one.location.uri.scheme === "file").slice(0, MOST_SYMBOLS).map(symbolOf);
}

function symbolOf(symbol: vscode.SymbolInformation): Completion {
  const { uri, range } = symbol.location;
  const path = vscode.workspace.asRelativePath(uri, false);
  const lines = range.isSingleLine ? `${range.start.line + 1}` : `${range.start.line + 1}-${range.end.line + 1}`;
  const place = `${path}:${lines}`;
  return { label: symbol.name, text: /[\s"]/.test(path) ? `@"${path}":${lines}` : `@${place}`, kind: "symbol", detail: place };
}
