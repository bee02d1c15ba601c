import * as vscode from "vscode";

/** The editor that a command is about. Throws with a sentence if there is none for it. */
export function fileEditor(what: string): vscode.TextEditor {
  const editor = vscode.window.activeTextEditor;
  if (editor?.document.uri.scheme !== "file") throw new Error(`Open a file and select what to ${what}.`);
  return editor;
}

/** What is to be rewritten: the selection, or else the definition at the cursor, or the paragraph;
 * on an empty line that is the cursor: a place to write at. */
export async function meant(editor: vscode.TextEditor): Promise<vscode.Range> {
  const { document, selection } = editor;
  if (!selection.isEmpty) return selection;
  const line = document.lineAt(selection.active.line);
  if (line.isEmptyOrWhitespace) return selection;
  return (await definitionAt(document, selection.active)) ?? paragraphAt(document, selection.active.line);
}

async function definitionAt(
  document: vscode.TextDocument,
  position: vscode.Position,
): Promise<vscode.Range | undefined> {
  const found = await vscode.commands.executeCommand<
    (vscode.DocumentSymbol | vscode.SymbolInformation)[] | undefined
  >("vscode.executeDocumentSymbolProvider", document.uri);
  let within = (found ?? []).filter((one): one is vscode.DocumentSymbol => "children" in one);
  let best: vscode.DocumentSymbol | undefined;
  for (;;) {
    const next = within.find(({ range }) => range.contains(position));
    if (!next) break;
    if (WHOLE.has(next.kind)) best = next;
    within = next.children;
  }
  return best?.range;
}

/** What one would call "this function". */
const WHOLE: ReadonlySet<vscode.SymbolKind> = new Set([
  vscode.SymbolKind.Function,
  vscode.SymbolKind.Method,
  vscode.SymbolKind.Constructor,
  vscode.SymbolKind.Class,
  vscode.SymbolKind.Interface,
  vscode.SymbolKind.Struct,
  vscode.SymbolKind.Enum,
]);

function paragraphAt(document: vscode.TextDocument, line: number): vscode.Range {
  const empty = (at: number) => document.lineAt(at).isEmptyOrWhitespace;
  let first = line;
  let last = line;
  while (first > 0 && !empty(first - 1)) first--;
  while (last < document.lineCount - 1 && !empty(last + 1)) last++;
  return new vscode.Range(first, 0, last, document.lineAt(last).text.length);
}

/** Lines as people count them, for a prompt. */
export function lineWords(range: vscode.Range): string {
  const first = range.start.line + 1;
  const whole = range.end.character === 0 && range.end.line > range.start.line;
  const last = whole ? range.end.line : range.end.line + 1;
  if (range.isEmpty) return `Write at line ${first}`;
  return first === last ? `Rewrite line ${first}` : `Rewrite lines ${first} to ${last}`;
}
