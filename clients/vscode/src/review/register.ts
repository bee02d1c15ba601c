import type * as vscode from "vscode";
import type { Magy } from "../magy";

export function registerReview(_context: vscode.ExtensionContext, _magy: Magy): void {}
