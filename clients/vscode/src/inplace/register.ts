import type * as vscode from "vscode";
import type { Magy } from "../magy";

export function registerInPlace(_context: vscode.ExtensionContext, _magy: Magy): void {}
