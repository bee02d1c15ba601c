import type * as vscode from "vscode";
import type { Diagnostic, Position, Range } from "../wire/generated";

/** The shape that a position has on the wire. */
export function wiredPosition({ line, character }: vscode.Position): Position {
  return { line, character };
}

/** The shape that a range has on the wire. */
export function wired({ start, end }: vscode.Range): Range {
  return { start: wiredPosition(start), end: wiredPosition(end) };
}

/** The shape that a diagnostic has on the wire, without its file. */
export function wiredDiagnostic(one: vscode.Diagnostic): Diagnostic {
  const code = typeof one.code === "object" ? one.code.value : one.code;
  return {
    range: wired(one.range),
    severity: one.severity + 1,
    message: one.message,
    source: one.source ?? null,
    code: code ?? null,
  };
}
