import * as vscode from "vscode";
import type { Connection } from "../connection";
import type { Diagnostic, Location, LocationsAnswer, PlaceParams, Symbol as WireSymbol } from "../wire/generated";
import { diagnosticsOf } from "./diagnostics";
import { opened, STARTING } from "./languages";
import { Openings } from "./openings";
import { wired, wiredDiagnostic } from "./wired";

/** Results of one answer. */
const MOST = 200;
/** Milliseconds between two looks. */
const PAUSE = 200;

type Found = vscode.Location | vscode.LocationLink;
type Named = vscode.DocumentSymbol | vscode.SymbolInformation;

/** Answers what an agent asks of the other extensions of this VS Code: diagnostics, definitions,
 * references and symbols. */
export function registerKnowledge(context: vscode.ExtensionContext, connection: Connection): void {
  const places =
    (command: string) =>
    async ({ uri, position }: PlaceParams, token: vscode.CancellationToken): Promise<LocationsAnswer> => {
      const file = vscode.Uri.parse(uri);
      const at = new vscode.Position(position.line, position.character);
      const found = await known<Found>(file, token, command, at);
      return { locations: await locations(found.slice(0, MOST)), truncated: found.length > MOST };
    };
  context.subscriptions.push(
    connection.answer("magy/editor/diagnostics", async ({ uri }) => {
      const found = uri ? await allOf(vscode.Uri.parse(uri)) : allDiagnostics();
      return { diagnostics: found.slice(0, MOST), truncated: found.length > MOST };
    }),
    connection.answer("magy/editor/definition", places("vscode.executeDefinitionProvider")),
    connection.answer("magy/editor/references", places("vscode.executeReferenceProvider")),
    connection.answer("magy/editor/symbols", async ({ uri, query }, token) => {
      const found = uri ? await outline(vscode.Uri.parse(uri), query, token) : await named(query);
      return { symbols: found.slice(0, MOST), truncated: found.length > MOST };
    }),
  );
}

async function allOf(file: vscode.Uri): Promise<Diagnostic[]> {
  return sent(file, await diagnosticsOf(file));
}

/** Of all files that VS Code lists. */
function allDiagnostics(): Diagnostic[] {
  const all = vscode.languages.getDiagnostics().filter(([{ scheme }]) => scheme === "file");
  return all.flatMap(([file, found]) => sent(file, found));
}

function sent(file: vscode.Uri, found: readonly vscode.Diagnostic[]): Diagnostic[] {
  return found.map((one) => ({ uri: file.toString(), ...wiredDiagnostic(one) }));
}

/** What a command of VS Code's finds in a file. */
function known<T>(file: vscode.Uri, token: vscode.CancellationToken, command: string, ...more: unknown[]): Promise<T[]> {
  return soon(file, token, async () => {
    const found = await vscode.commands.executeCommand<T[] | undefined>(command, file, ...more);
    return found ?? [];
  });
}

const openings = new Openings();

/** What `look` finds about a file. The extension that knows its language may start only when the file is opened, and
 * find nothing until then. */
async function soon<T>(file: vscode.Uri, token: vscode.CancellationToken, look: () => Promise<T[]>): Promise<T[]> {
  const end = await openings.until(file.toString(), documentOf(file) !== undefined, async () => {
    await opened(file);
    return Date.now() + STARTING;
  });
  for (;;) {
    const found = await look();
    if (found.length || Date.now() >= end || token.isCancellationRequested) return found;
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
}

function documentOf(file: vscode.Uri): vscode.TextDocument | undefined {
  return vscode.workspace.textDocuments.find((one) => one.uri.toString() === file.toString());
}

async function locations(found: readonly Found[]): Promise<Location[]> {
  const lines = new Map<string, Promise<string[]>>();
  return Promise.all(
    found.map(async (one) => {
      const [file, range] =
        "targetUri" in one ? [one.targetUri, one.targetSelectionRange ?? one.targetRange] : [one.uri, one.range];
      const uri = file.toString();
      if (!lines.has(uri)) lines.set(uri, linesOf(file));
      const text = (await lines.get(uri))?.[range.start.line] ?? "";
      return { uri, range: wired(range), text: text.trim() };
    }),
  );
}

/** The lines of a file as they are in the editor, or else on the disk; none of what is no file. */
async function linesOf(file: vscode.Uri): Promise<string[]> {
  try {
    const text = documentOf(file)?.getText() ?? new TextDecoder().decode(await vscode.workspace.fs.readFile(file));
    return text.split(/\r\n|\r|\n/);
  } catch {
    return []; // the place is told without its text
  }
}

/** The definitions in a file that have `query` in their names. */
async function outline(file: vscode.Uri, query: string, token: vscode.CancellationToken): Promise<WireSymbol[]> {
  const found = await known<Named>(file, token, "vscode.executeDocumentSymbolProvider");
  return flat(found, file, null).filter(({ name }) => name.toLowerCase().includes(query.toLowerCase()));
}

/** The definitions in all of the window's folders that fit `query`. */
async function named(query: string): Promise<WireSymbol[]> {
  const found = await vscode.commands.executeCommand<vscode.SymbolInformation[] | undefined>(
    "vscode.executeWorkspaceSymbolProvider",
    query,
  );
  return (found ?? []).map((one) => symbol(one, one.location.uri, one.location.range, one.containerName));
}

function flat(all: readonly Named[], file: vscode.Uri, container: string | null): WireSymbol[] {
  return all.flatMap((one) =>
    "children" in one
      ? [symbol(one, file, one.range, container), ...flat(one.children, file, one.name)]
      : [symbol(one, one.location.uri, one.location.range, one.containerName)],
  );
}

function symbol(
  { name, kind }: { name: string; kind: vscode.SymbolKind },
  file: vscode.Uri,
  range: vscode.Range,
  container: string | null,
): WireSymbol {
  const word = vscode.SymbolKind[kind].toLowerCase();
  return { name, kind: word, uri: file.toString(), range: wired(range), container: container || null };
}
