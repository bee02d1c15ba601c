import * as vscode from "vscode";
import type { Lines, ReviewEntry, ReviewFile } from "../wire/generated";
import { touching } from "./hunks";
import type { HunkName } from "./lenses";
import { fileOf, type Reviews, shownUri } from "./reviews";

/** What a decision is about, in one review of one file. */
export interface Chosen {
  file: ReviewFile;
  which: { hunkIds: string[] } | { lines: Lines };
}

/** What a menu beside a changed line, or in the list of files, passes to a command. */
export type Place =
  | HunkName
  | { uri: vscode.Uri; lineNumber: number }
  | vscode.SourceControlResourceState
  | vscode.Uri
  | undefined;

/** A change as the editor's quick diff passes it; lines from 1, an end of 0: none. */
export interface LineChange {
  modifiedStartLineNumber: number;
  modifiedEndLineNumber: number;
}

/** Says what a person points at, by a button, a menu, or the cursor. Throws with a sentence. */
export class Targets {
  constructor(private readonly reviews: Reviews) {}

  /** The hunk that a button names, as it is now, or those at the cursor or in the selection. */
  async hunks(place: Place, changes?: LineChange[], index?: number): Promise<Chosen[]> {
    if (place && "hunkId" in place) return [await this.named(place)];
    const change = changes?.[index ?? 0];
    if (place instanceof vscode.Uri && change) return this.changeIn(place, change);
    if (place && "lineNumber" in place) {
      return this.at(await opened(place.uri), place.lineNumber - 1, place.lineNumber - 1);
    }
    const editor = editorInUse();
    const { document, selection } = editor;
    if (selection.isEmpty) {
      return this.at(document, selection.active.line, selection.active.line);
    }
    const last = selection.end.character > 0 ? selection.end.line : selection.end.line - 1;
    return this.linesOf(document, selection.start.line, last);
  }

  /** The files that are meant: of the list of files, or the one that is shown. */
  entries(place: Place): ReviewEntry[] {
    const uri = fileOf(uriOf(place) ?? shownUri() ?? editorInUse().document.uri);
    const found = this.reviews.of(uri);
    if (found.length === 0) {
      throw new Error(`Nothing in ${vscode.workspace.asRelativePath(uri)} waits for a decision.`);
    }
    return [...found];
  }

  private async named(name: HunkName): Promise<Chosen> {
    const file = await this.reviews.get({
      uri: name.uri,
      mode: name.proposed ? "proposed" : "applied",
    });
    if (!file) throw new Error("Nothing in this file waits for a decision any more.");
    return { file, which: { hunkIds: [name.hunkId] } };
  }

  private async at(document: vscode.TextDocument, first: number, last: number): Promise<Chosen[]> {
    const found = touching(await this.filesOf(document), first, last);
    const best = found[0];
    if (!best) throw nothingAt(document, first);
    return [{ file: best.file, which: { hunkIds: [best.hunk.hunkId] } }];
  }

  private async linesOf(
    document: vscode.TextDocument,
    first: number,
    last: number,
  ): Promise<Chosen[]> {
    const files = await this.filesOf(document);
    const found = files.filter((file) => touching([file], first, last).length > 0);
    if (found.length === 0) throw nothingAt(document, first);
    return found.map((file) => ({ file, which: { lines: { start: first, end: last + 1 } } }));
  }

  private async changeIn(uri: vscode.Uri, change: LineChange): Promise<Chosen[]> {
    const document = await opened(uri);
    const { modifiedStartLineNumber: first, modifiedEndLineNumber: last } = change;
    if (last === 0) return this.at(document, Math.max(0, first - 1), first);
    return this.linesOf(document, first - 1, last - 1);
  }

  private async filesOf(document: vscode.TextDocument): Promise<ReviewFile[]> {
    const files = await this.reviews.in(document);
    if (!files) throw new Error("The text changes too fast to tell which change is meant. Try again.");
    return files;
  }
}

function editorInUse(): vscode.TextEditor {
  const editor = vscode.window.activeTextEditor;
  if (!editor) throw new Error("No text is shown. Open a file that is under review first.");
  return editor;
}

function uriOf(place: Place): vscode.Uri | undefined {
  if (place instanceof vscode.Uri) return place;
  if (place && "resourceUri" in place) return place.resourceUri;
  if (place && "hunkId" in place) return vscode.Uri.parse(place.uri);
  return undefined;
}

async function opened(uri: vscode.Uri): Promise<vscode.TextDocument> {
  return vscode.workspace.openTextDocument(uri);
}

function nothingAt(document: vscode.TextDocument, line: number): Error {
  const name = vscode.workspace.asRelativePath(document.uri);
  return new Error(`No change waits for a decision at line ${line + 1} of ${name}.`);
}
