import * as vscode from "vscode";
import type { Connection } from "../connection";
import type { ReviewEntry, ReviewNavigateResult } from "../wire/generated";
import { isProposed } from "./hunks";
import { fileOf, type Reviews, shownUri } from "./reviews";
import type { Targets, Place } from "./targets";

/** The scheme of empty documents: the other side of files that are new, or gone. */
export const NOTHING = "magy-nothing";

/** Goes to changes, and shows files beside what they were. */
export class Visiting {
  constructor(
    private readonly connection: Connection,
    private readonly reviews: Reviews,
    private readonly targets: Targets,
  ) {}

  /** The next or previous change, in whatever file. */
  async go(direction: "next" | "previous"): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const shown = editor?.document.uri ?? shownUri();
    const uri = shown && fileOf(shown);
    const here = uri?.scheme === "file" ? uri : undefined;
    const found = await this.connection.request("magy/review/navigate", {
      uri: here?.toString() ?? null,
      line: here ? (editor?.selection.active.line ?? 0) : 0,
      direction,
    });
    if (!found.uri) throw new Error("No change waits for a decision.");
    await this.visit(found);
  }

  /** The next change of the file that an editor shows, if there is one. */
  async nextIn(editor: vscode.TextEditor): Promise<void> {
    const uri = editor.document.uri;
    const found = await this.connection.request("magy/review/navigate", {
      uri: uri.toString(),
      // From the line before: the change after a rejected one may begin where the cursor is.
      line: Math.max(0, editor.selection.active.line - 1),
      direction: "next",
    });
    const there = found.uri && vscode.Uri.parse(found.uri).toString() === uri.toString();
    if (there && found.range && vscode.window.activeTextEditor === editor) reveal(editor, found);
  }

  /** A file beside what it was, or beside what is proposed for it. */
  async diff(place: Place): Promise<void> {
    for (const entry of this.targets.entries(place)) {
      const [before, after] = await this.sides(entry);
      const name = vscode.workspace.asRelativePath(entry.path);
      const what = isProposed(entry) ? "what is proposed" : "under review";
      await vscode.commands.executeCommand("vscode.diff", before, after, `${name} (${what})`);
    }
  }

  /** The text that a file had before its changes. */
  async base(place: Place): Promise<void> {
    const file = await this.reviews.get(this.targets.entries(place)[0] as ReviewEntry);
    if (!file) return;
    const base = await vscode.workspace.openTextDocument(vscode.Uri.parse(file.baseUri));
    await vscode.window.showTextDocument(base, { viewColumn: vscode.ViewColumn.Beside });
  }

  /** All files under review in one editor. */
  async all(): Promise<void> {
    const entries = this.reviews.all;
    if (entries.length === 0) throw new Error("No change waits for a decision.");
    const rows = await Promise.all(
      entries.map(async (entry) => {
        const [before, after] = await this.sides(entry);
        const there = (side: vscode.Uri) => (side.scheme === NOTHING ? undefined : side);
        return [vscode.Uri.file(entry.path), there(before), there(after)];
      }),
    );
    await vscode.commands.executeCommand("vscode.changes", "Magy: Changes Under Review", rows);
  }

  /** What stands on the left and on the right of a diff of a file. */
  private async sides(entry: ReviewEntry): Promise<[vscode.Uri, vscode.Uri]> {
    const file = await this.reviews.get(entry);
    const live = vscode.Uri.parse(entry.uri);
    const base = file ? vscode.Uri.parse(file.baseUri) : live;
    const nothing = live.with({ scheme: NOTHING });
    if (file?.proposedUri) {
      const before = entry.status === "created" ? nothing : live;
      return [before, entry.status === "deleted" ? nothing : vscode.Uri.parse(file.proposedUri)];
    }
    if (entry.status === "created") return [nothing, live];
    return [base, entry.status === "deleted" ? nothing : live];
  }

  private async visit(found: ReviewNavigateResult): Promise<void> {
    const uri = vscode.Uri.parse(found.uri ?? "");
    try {
      const document = await vscode.workspace.openTextDocument(uri);
      reveal(await vscode.window.showTextDocument(document), found);
    } catch {
      await this.diff(uri); // it is gone, or no text
    }
  }
}

function reveal(editor: vscode.TextEditor, found: ReviewNavigateResult): void {
  const at = new vscode.Position(found.range?.start.line ?? 0, 0);
  editor.selection = new vscode.Selection(at, at);
  editor.revealRange(new vscode.Range(at, at), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
}
