import * as vscode from "vscode";
import { buttonLine, HOVERED, isProposed, lineSpan, linesOf } from "./hunks";
import type { HunkName } from "./lenses";
import type { Reviews } from "./reviews";
import { NOTHING } from "./visiting";

const HUNK = "magy-hunk";

/** The lines that are not in a file: removed ones in their old surroundings, or proposed ones. */
export class Texts implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly proposals = new Map<string, string>();
  private readonly disposables: vscode.Disposable[];

  constructor(private readonly reviews: Reviews) {
    this.disposables = [HUNK, NOTHING].map((scheme) =>
      vscode.workspace.registerTextDocumentContentProvider(scheme, this),
    );
  }

  dispose(): void {
    vscode.Disposable.from(...this.disposables).dispose();
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.proposals.get(uri.toString()) ?? "";
  }

  /** Shows the lines that are not in the text where the hunk is: few in a hover, and more of them
   * in their old surroundings. */
  async show(name: HunkName): Promise<void> {
    const file = await this.reviews.get({
      uri: name.uri,
      mode: name.proposed ? "proposed" : "applied",
    });
    const hunk = file?.hunks.find((one) => one.hunkId === name.hunkId);
    if (!file || !hunk) throw new Error("That change is another one by now. Look at it again.");
    const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(file.uri));
    const at = new vscode.Position(buttonLine(hunk, document.lineCount), 0);
    const hidden = linesOf(isProposed(file) ? hunk.newText : hunk.oldText).length;
    if (hidden <= HOVERED) return hoverAt(document, at);
    const shown = isProposed(file)
      ? this.proposal(document.uri, hunk.hunkId, hunk.newText)
      : new vscode.Location(vscode.Uri.parse(file.baseUri), wholeLines(hunk.baseRange));
    const { uri } = document;
    await vscode.commands.executeCommand("editor.action.peekLocations", uri, at, [shown], "peek");
  }

  private proposal(uri: vscode.Uri, hunkId: string, text: string): vscode.Location {
    const shown = uri.with({ scheme: HUNK, query: hunkId });
    this.proposals.set(shown.toString(), text);
    const lines = text.split("\n").length;
    return new vscode.Location(shown, new vscode.Range(0, 0, lines, 0));
  }
}

async function hoverAt(document: vscode.TextDocument, at: vscode.Position): Promise<void> {
  const editor = await vscode.window.showTextDocument(document);
  editor.selection = new vscode.Selection(at, at);
  await vscode.commands.executeCommand("editor.action.showHover");
}

function wholeLines(range: Parameters<typeof lineSpan>[0]): vscode.Range {
  const { start, end } = lineSpan(range);
  return new vscode.Range(start, 0, Math.max(start, end - 1), 10_000);
}
