import { randomBytes } from "node:crypto";
import * as vscode from "vscode";

/** The page of a transcript. It runs its own script, and loads nothing from anywhere else. */
export function pageOf(webview: vscode.Webview, extension: vscode.Uri, place: "view" | "editor"): string {
  const nonce = randomBytes(16).toString("hex");
  const out = vscode.Uri.joinPath(extension, "out", "webview");
  const script = webview.asWebviewUri(vscode.Uri.joinPath(out, "main.js"));
  const style = webview.asWebviewUri(vscode.Uri.joinPath(out, "main.css"));
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src ${webview.cspSource}`,
    `font-src ${webview.cspSource}`,
    "img-src data:",
  ].join("; ");
  return `<!DOCTYPE html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta http-equiv="Content-Security-Policy" content="${policy}">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Magy</title>
    <link rel="stylesheet" href="${style.toString()}">
  </head>
  <body data-place="${place}">
    <script nonce="${nonce}" src="${script.toString()}"></script>
  </body>
</html>`;
}

/** What a webview of ours may do: run its script, and load what the extension brought. */
export function optionsOf(extension: vscode.Uri): vscode.WebviewOptions {
  return { enableScripts: true, localResourceRoots: [vscode.Uri.joinPath(extension, "out", "webview")] };
}
