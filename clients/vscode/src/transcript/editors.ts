import * as vscode from "vscode";

/** The text editor that the person used last; a webview that has the focus is none. */
export class LastEditor implements vscode.Disposable {
  private last = vscode.window.activeTextEditor;
  private readonly watch = vscode.window.onDidChangeActiveTextEditor((editor) => {
    if (editor && isFile(editor)) this.last = editor;
  });

  get editor(): vscode.TextEditor | undefined {
    const active = vscode.window.activeTextEditor;
    if (active && isFile(active)) return active;
    const { last } = this;
    return last && vscode.window.visibleTextEditors.includes(last) ? last : undefined;
  }

  dispose(): void {
    this.watch.dispose();
  }
}

function isFile(editor: vscode.TextEditor): boolean {
  return editor.document.uri.scheme === "file";
}
