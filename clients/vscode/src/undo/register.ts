import type * as vscode from "vscode";
import type { Magy } from "../magy";

export function registerUndo(_context: vscode.ExtensionContext, _magy: Magy): void {}
