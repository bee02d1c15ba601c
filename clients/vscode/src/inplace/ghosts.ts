import * as vscode from "vscode";
import { type Look, picture } from "./draft";

const LINE_HEIGHT = process.platform === "darwin" ? 1.5 : 1.35;

/** What is drawn of rewrites in the editors: the old text dimmed, and the draft below it. */
export class Ghosts implements vscode.Disposable {
  private readonly dimmed = vscode.window.createTextEditorDecorationType({ opacity: "0.45" });
  private readonly drafted = vscode.window.createTextEditorDecorationType({});

  dispose(): void {
    this.dimmed.dispose();
    this.drafted.dispose();
  }

  /** Draws these in all editors of a document, and nothing else there. */
  draw(uri: string, drafts: readonly { range: vscode.Range; text: string }[]): void {
    for (const editor of vscode.window.visibleTextEditors) {
      if (editor.document.uri.toString() !== uri) continue;
      editor.setDecorations(
        this.dimmed,
        drafts.map(({ range }) => range),
      );
      editor.setDecorations(
        this.drafted,
        drafts.flatMap(({ range, text }) => below(editor, range, text) ?? []),
      );
    }
  }
}

function below(
  editor: vscode.TextEditor,
  range: vscode.Range,
  text: string,
): vscode.DecorationOptions | undefined {
  const drawn = picture(text, lookOf(editor));
  if (!drawn) return undefined;
  const data = Buffer.from(drawn.svg).toString("base64");
  // Whole lines end where the next one begins, which is not theirs.
  const last = range.end.character === 0 && !range.isEmpty ? range.end.line - 1 : range.end.line;
  const end = editor.document.lineAt(Math.min(last, editor.document.lineCount - 1)).range.end;
  const tint = "var(--vscode-diffEditor-insertedLineBackground, rgba(0,128,0,.2))";
  return {
    range: new vscode.Range(end, end),
    renderOptions: {
      after: {
        contentIconPath: vscode.Uri.parse(`data:image/svg+xml;base64,${data}`),
        width: `${drawn.width}px`,
        height: `${drawn.height}px`,
        // There is no other way to say where an attachment stands.
        textDecoration: [
          "none",
          "position:absolute",
          "left:0",
          "top:100%",
          "z-index:5",
          "pointer-events:none",
          `background:linear-gradient(${tint},${tint}),var(--vscode-editor-background)`,
        ].join(";"),
      },
    },
  };
}

function lookOf(editor: vscode.TextEditor): Look {
  const settings = vscode.workspace.getConfiguration("editor", editor.document);
  const fontSize = settings.get("fontSize", 14);
  const height = settings.get("lineHeight", 0);
  const kind = vscode.window.activeColorTheme.kind;
  return {
    fontFamily: settings.get("fontFamily", "monospace"),
    fontSize,
    lineHeight: Math.round(height === 0 ? fontSize * LINE_HEIGHT : height < 8 ? fontSize * height : height),
    tabSize: Number(editor.options.tabSize) || 4,
    dark: kind === vscode.ColorThemeKind.Dark || kind === vscode.ColorThemeKind.HighContrast,
  };
}
