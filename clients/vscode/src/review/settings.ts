import * as vscode from "vscode";

function get<T>(name: string, otherwise: T): T {
  return vscode.workspace.getConfiguration("magy.review").get(name, otherwise);
}

/** Whether changes are drawn in the text, with buttons above them. */
export function drawsInEditor(): boolean {
  return get<string>("surface", "both") !== "quickDiff";
}

/** Whether changes are marked beside the line numbers, by the editor's own quick diff. */
export function drawsInGutter(): boolean {
  return get<string>("surface", "both") !== "editor";
}

/** Whether a rejection always asks for the reason. */
export function asksReason(): boolean {
  return get("askReason", false);
}

/** Whether a decision goes on to the next change of the file. */
export function goesOn(): boolean {
  return get("goOn", true);
}
