import type * as vscode from "vscode";
import type { Magy } from "../magy";

export function registerTranscript(_context: vscode.ExtensionContext, _magy: Magy): void {}
