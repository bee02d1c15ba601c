import { isAbsolute, join } from "node:path";
import * as vscode from "vscode";
import { meant } from "./targets";
import type { Place } from "./targets";

/** Opens what a link means; `root` is the directory that paths are relative to. */
export async function openLink(href: string, root: string | undefined): Promise<void> {
  const found = meant(href);
  if (found === undefined) {
    const why = href.startsWith("magy-blob:") ? "This picture was sent from another program." : `Magy opens web pages and files, and not ${href.slice(0, 200)}`;
    throw new Error(why);
  }
  if ("web" in found) await vscode.env.openExternal(vscode.Uri.parse(found.web, true));
  else await openPlace(found, root);
}

/** Shows a place of a file beside the transcript. */
export async function openPlace(place: Place, root: string | undefined): Promise<void> {
  const uri = await existing(place.path, root);
  if (!uri) throw new Error(`There is no ${place.path} now.`);
  const line = Math.max(0, (place.line ?? 1) - 1);
  const document = await vscode.workspace.openTextDocument(uri);
  const at = document.validatePosition(new vscode.Position(line, 0));
  const options: vscode.TextDocumentShowOptions = { preview: true };
  if (place.line !== undefined) options.selection = new vscode.Range(at, at);
  await vscode.window.showTextDocument(document, options);
}

async function existing(path: string, root: string | undefined): Promise<vscode.Uri | undefined> {
  const folders = vscode.workspace.workspaceFolders?.map((one) => one.uri.fsPath) ?? [];
  const tried = isAbsolute(path) ? [path] : [root, ...folders].filter((one) => one !== undefined).map((one) => join(one, path));
  for (const one of tried) {
    const uri = vscode.Uri.file(one);
    try {
      if ((await vscode.workspace.fs.stat(uri)).type & vscode.FileType.File) return uri;
    } catch {
      continue; // not there
    }
  }
  return undefined;
}
