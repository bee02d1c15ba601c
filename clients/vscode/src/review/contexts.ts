import * as vscode from "vscode";
import { counted, touching } from "./hunks";
import type { Reviews } from "./reviews";

/** Tells the editor when commands of the review make sense, and the person how much waits. */
export class Contexts implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem(
    "magy.review",
    vscode.StatusBarAlignment.Left,
    40,
  );
  private readonly disposables: vscode.Disposable[];

  constructor(private readonly reviews: Reviews) {
    this.item.name = "Magy Review";
    this.item.command = "magy.review.nextChange";
    this.disposables = [
      this.item,
      reviews.onDidChange(() => this.refresh()),
      vscode.window.onDidChangeActiveTextEditor(() => void this.atCursor()),
      vscode.window.onDidChangeTextEditorSelection(() => void this.atCursor()),
    ];
    this.refresh();
  }

  dispose(): void {
    vscode.Disposable.from(...this.disposables).dispose();
  }

  private refresh(): void {
    const { changes, files } = this.reviews.sum;
    set("magy.reviewActive", changes > 0);
    set("magy.reviewPaths", [...new Set(this.reviews.all.map((entry) => entry.path))]);
    const what = `${counted(changes, "change")} in ${counted(files, "file")}`;
    this.item.text = `$(diff) ${changes}`;
    this.item.tooltip = `Magy: ${what} wait${changes === 1 ? "s" : ""} for a decision. Click for the next.`;
    this.item.accessibilityInformation = { label: `${what} to review` };
    if (changes > 0) this.item.show();
    else this.item.hide();
    void this.atCursor();
  }

  private async atCursor(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const files = editor ? await this.reviews.in(editor.document) : [];
    if (!files || editor !== vscode.window.activeTextEditor) return;
    const { start, end } = editor?.selection ?? new vscode.Selection(0, 0, 0, 0);
    set("magy.changeAtCursor", touching(files, start.line, end.line).length > 0);
  }
}

const known = new Map<string, string>();

function set(name: string, value: unknown): void {
  const shown = JSON.stringify(value);
  if (known.get(name) === shown) return;
  known.set(name, shown);
  void vscode.commands.executeCommand("setContext", name, value);
}
