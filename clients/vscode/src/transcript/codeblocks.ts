import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import type { Connection } from "../connection";
import type { EditApplyParams } from "../wire/generated";
import type { LastEditor } from "./editors";
import { isEdit, namedFile } from "./fences";

type Edit = Pick<EditApplyParams, "uri" | "text" | "edits" | "seen">;

/** Copies a block of code. */
export async function copyCode(text: string): Promise<string> {
  await vscode.env.clipboard.writeText(text);
  return "Copied";
}

/** Puts a block of code at the cursor, as if the person had pasted it. */
export async function insertCode(editors: LastEditor, text: string): Promise<string> {
  const editor = editors.editor;
  if (!editor) throw new Error("No file is open: open the one that it is for, and put the cursor there.");
  const done = await editor.edit((edit) => edit.replace(editor.selection, text));
  if (!done) throw new Error("The file cannot be changed.");
  return "Inserted";
}

/** Applies a block of code through the server: what it changes is then under review. */
export async function applyCode(connection: Connection, editors: LastEditor, text: string, info: string, root: string | undefined): Promise<string> {
  const edit = await editOf(editors, text, info, root);
  if (!edit) throw new vscode.CancellationError();
  const result = await connection.request("magy/edit/apply", {
    ...edit, cwd: root ?? null, label: "Magy: apply code", requestKey: `apply-${randomUUID()}`,
  });
  if (!result.applied) throw new Error(result.failures[0]?.message || result.message || "It does not fit.");
  const added = result.files.reduce((sum, file) => sum + file.added, 0);
  const removed = result.files.reduce((sum, file) => sum + file.removed, 0);
  return result.message || `Applied, under review: +${added} -${removed}`;
}

async function editOf(editors: LastEditor, text: string, info: string, root: string | undefined): Promise<Edit | undefined> {
  const editor = editors.editor;
  const uri = editor?.document.uri.toString();
  if (isEdit(text, info)) return /^(?:---|diff --git|\*{3} )/m.test(text) || !uri ? { text } : { text, uri };
  const path = namedFile(info);
  if (path) {
    const place = await namedPlace(path, root);
    if (place !== "cursor") return place === undefined ? undefined : { edits: [{ path, content: `${text}\n` }] };
  }
  if (!editor || !uri) throw new Error("The code names no file, and none is open: open the one that it is for.");
  const { document, selection } = editor;
  const seen = document.getText();
  const old = document.getText(selection);
  if (old) return { uri, seen, edits: [{ old_text: old, new_text: text, line: selection.start.line + 1 }] };
  return { uri, seen, edits: [{ insert: { line: selection.active.line, text: `${text}\n` } }] };
}

/** Where code goes that names a file: it is the file, or a piece of it, as the person says. */
async function namedPlace(path: string, root: string | undefined): Promise<"file" | "cursor" | undefined> {
  const base = root ? vscode.Uri.file(root) : vscode.workspace.workspaceFolders?.[0]?.uri;
  if (!base) return "cursor";
  try {
    await vscode.workspace.fs.stat(vscode.Uri.joinPath(base, path));
  } catch {
    return "file"; // it is made
  }
  const whole = `Replace the whole of ${path}`;
  const piece = "Put it at the cursor, or in the place of the selection";
  const chosen = await vscode.window.showQuickPick([piece, whole], { title: `This code is for ${path}, which exists` });
  if (chosen === undefined) return undefined;
  return chosen === whole ? "file" : "cursor";
}
