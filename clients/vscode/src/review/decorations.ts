import * as vscode from "vscode";
import type { ReviewFile, ReviewHunk } from "../wire/generated";
import { isOfLines, isProposed, lineSpan } from "./hunks";
import type { Reviews } from "./reviews";
import { drawsInEditor } from "./settings";

type Kind = "added" | "replaced" | "deletedAbove" | "deletedBelow" | "word";

/** Draws hunks in the editors that show their files. What is drawn moves along with typing. */
export class Decorations implements vscode.Disposable {
  private readonly types: Record<Kind, vscode.TextEditorDecorationType>;
  private readonly disposables: vscode.Disposable[];

  constructor(private readonly reviews: Reviews) {
    this.types = decorationTypes();
    this.disposables = [
      ...Object.values(this.types),
      reviews.onDidChange(() => this.drawAll()),
      vscode.window.onDidChangeVisibleTextEditors(() => this.drawAll()),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("magy.review")) this.drawAll();
      }),
    ];
    this.drawAll();
  }

  dispose(): void {
    vscode.Disposable.from(...this.disposables).dispose();
  }

  private drawAll(): void {
    for (const editor of vscode.window.visibleTextEditors) void this.draw(editor);
  }

  private async draw(editor: vscode.TextEditor): Promise<void> {
    const files = drawsInEditor() ? await this.reviews.in(editor.document) : [];
    // Where it cannot be said, what was drawn has moved along; the server speaks again.
    if (files) this.show(editor, files);
  }

  private show(editor: vscode.TextEditor, files: readonly ReviewFile[]): void {
    const found: Record<Kind, vscode.Range[]> = {
      added: [],
      replaced: [],
      deletedAbove: [],
      deletedBelow: [],
      word: [],
    };
    for (const file of files) {
      for (const hunk of file.hunks.filter(isOfLines)) place(found, file, hunk, editor.document);
    }
    for (const kind of Object.keys(found) as Kind[]) {
      editor.setDecorations(this.types[kind], found[kind]);
    }
  }
}

function place(
  found: Record<Kind, vscode.Range[]>,
  file: ReviewFile,
  hunk: ReviewHunk,
  document: vscode.TextDocument,
): void {
  const { start, end } = lineSpan(hunk.range);
  if (start === end) {
    const line = Math.min(hunk.anchor, document.lineCount - 1);
    if (!isProposed(file)) {
      found[hunk.above ? "deletedAbove" : "deletedBelow"].push(new vscode.Range(line, 0, line, 0));
    }
    return;
  }
  const last = Math.min(end, document.lineCount) - 1;
  const lines = new vscode.Range(start, 0, last, document.lineAt(last).text.length);
  found[isProposed(file) ? "replaced" : "added"].push(lines);
  if (isProposed(file)) return;
  for (const word of hunk.words.filter((one) => one.side === "new")) {
    const line = start + word.line;
    found.word.push(new vscode.Range(line, word.start, line, word.end));
  }
}

function decorationTypes(): Record<Kind, vscode.TextEditorDecorationType> {
  const added = new vscode.ThemeColor("diffEditor.insertedLineBackground");
  const removed = new vscode.ThemeColor("diffEditor.removedLineBackground");
  const mark = new vscode.ThemeColor("editorGutter.addedBackground");
  const gone = new vscode.ThemeColor("editorGutter.deletedBackground");
  const make = vscode.window.createTextEditorDecorationType;
  const closed = vscode.DecorationRangeBehavior.ClosedClosed;
  const lane = vscode.OverviewRulerLane.Left;
  const line = { isWholeLine: true, rangeBehavior: closed, overviewRulerLane: lane };
  return {
    added: make({ ...line, ...edge("diffEditor.insertedTextBorder"), backgroundColor: added, overviewRulerColor: mark }),
    replaced: make({ ...line, ...edge("diffEditor.removedTextBorder"), backgroundColor: removed, overviewRulerColor: gone }),
    deletedAbove: make({
      ...line,
      borderColor: gone,
      borderStyle: "solid",
      borderWidth: "2px 0 0 0",
      overviewRulerColor: gone,
    }),
    deletedBelow: make({
      ...line,
      borderColor: gone,
      borderStyle: "solid",
      borderWidth: "0 0 2px 0",
      overviewRulerColor: gone,
    }),
    word: make({
      rangeBehavior: closed,
      backgroundColor: new vscode.ThemeColor("diffEditor.insertedTextBackground"),
    }),
  };
}

/** Themes of high contrast have no backgrounds, and this colour; others do not have it. */
function edge(color: string): vscode.DecorationRenderOptions {
  return { borderStyle: "dashed", borderWidth: "1px", borderColor: new vscode.ThemeColor(color) };
}
