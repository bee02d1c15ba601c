import * as vscode from "vscode";
import type { ApplyWorkspaceEditParams, ApplyWorkspaceEditResult } from "vscode-languageclient";
import type { Connection } from "../connection";

/** Milliseconds in which the editor says that it has saved a file, or read it again. */
const SETTLED = 1_000;
/** Milliseconds without a keystroke after which an edit is likely to meet the text that it is for. */
const REST = 150;
/** Milliseconds that are waited for such a moment. */
const PATIENCE = 3_000;

type Stamp = { mtime: number; size: number };

/**
 * The server's edits of open documents. The language client compares versions; this adds what only
 * the editor can tell: that the document is open here, and that its file was not written by
 * somebody else since it was read.
 */
export class LiveDocuments implements vscode.Disposable {
  private readonly stamps = new Map<string, Promise<Stamp | undefined>>();
  private readonly disposables: vscode.Disposable[];

  constructor(connection: Connection) {
    this.disposables = [
      connection.apply((params, next) => this.apply(params, next)),
      connection.answer("magy/editor/save", async ({ uri, version }) => ({
        saved: await this.save(vscode.Uri.parse(uri), version),
      })),
      vscode.workspace.onDidOpenTextDocument((document) => this.stamp(document)),
      vscode.workspace.onDidSaveTextDocument((document) => this.stamp(document)),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => this.stamps.delete(uri.toString())),
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        // It was read again: only a text as on the disk is not dirty.
        if (!document.isDirty) this.stamp(document);
      }),
    ];
    for (const document of vscode.workspace.textDocuments) this.stamp(document);
  }

  dispose(): void {
    vscode.Disposable.from(...this.disposables).dispose();
  }

  /** Makes the edit, or says why not; the server works it out anew then, or tells the agent. */
  private async apply(
    params: ApplyWorkspaceEditParams,
    next: (params: ApplyWorkspaceEditParams) => Promise<ApplyWorkspaceEditResult>,
  ): Promise<ApplyWorkspaceEditResult> {
    for (const change of params.edit.documentChanges ?? []) {
      if (!("textDocument" in change)) continue;
      const why = await this.refusal(vscode.Uri.parse(change.textDocument.uri), change.textDocument.version);
      if (why) return { applied: false, failureReason: why };
    }
    const result = await next(params);
    if (result.applied) return result;
    await Promise.all(documentsOf(params).map((document) => this.rest(document)));
    return { applied: false, failureReason: result.failureReason ?? "The text was changed in the meantime." };
  }

  private async refusal(uri: vscode.Uri, version: number | null): Promise<string | undefined> {
    const name = vscode.workspace.asRelativePath(uri);
    const document = documentOf(uri);
    if (!document) return `${name} is not open in VS Code.`;
    if (version !== null && document.version !== version) {
      await this.rest(document);
      return `${name} is at version ${document.version}, the edit is for ${version}.`;
    }
    if (await this.writtenElsewhere(document)) {
      return `${name} was changed on disk by another program; save or revert it in VS Code first.`;
    }
    return undefined;
  }

  /** Waits while the person types: the server tries again at once, and would be late again. */
  private async rest(document: vscode.TextDocument): Promise<void> {
    const end = Date.now() + PATIENCE;
    for (let seen = -1; seen !== document.version && Date.now() < end; ) {
      seen = document.version;
      await new Promise((resolve) => setTimeout(resolve, REST));
    }
  }

  private async save(uri: vscode.Uri, version: number): Promise<boolean> {
    const document = documentOf(uri);
    if (!document || document.version !== version) return false;
    if (await this.writtenElsewhere(document)) return false;
    return document.version === version && (await document.save());
  }

  /** Whether somebody else wrote the file since the editor read or saved it. */
  private async writtenElsewhere(document: vscode.TextDocument): Promise<boolean> {
    const end = Date.now() + SETTLED;
    for (;;) {
      const known = await this.stamps.get(document.uri.toString());
      const now = await stampOf(document.uri);
      if (!known || !now || (known.mtime === now.mtime && known.size === now.size)) return false;
      const text = plain(await vscode.workspace.fs.readFile(document.uri));
      if (text === document.getText().replaceAll("\r\n", "\n")) {
        this.stamp(document);
        return false;
      }
      // It may be the editor itself that has just saved it, or is about to read it again.
      if (Date.now() > end) return text !== undefined || document.isDirty;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  private stamp(document: vscode.TextDocument): void {
    const { uri } = document;
    if (uri.scheme === "file") this.stamps.set(uri.toString(), stampOf(uri));
  }
}

function documentsOf(params: ApplyWorkspaceEditParams): vscode.TextDocument[] {
  return (params.edit.documentChanges ?? []).flatMap(
    (change) => ("textDocument" in change && documentOf(vscode.Uri.parse(change.textDocument.uri))) || [],
  );
}

function documentOf(uri: vscode.Uri): vscode.TextDocument | undefined {
  return vscode.workspace.textDocuments.find((one) => one.uri.toString() === uri.toString());
}

async function stampOf(uri: vscode.Uri): Promise<Stamp | undefined> {
  try {
    const { mtime, size } = await vscode.workspace.fs.stat(uri);
    return { mtime, size };
  } catch {
    return undefined; // a new file that was not saved yet, or one that is gone
  }
}

/** undefined: the bytes are no UTF-8, and cannot be compared. */
function plain(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes).replaceAll("\r\n", "\n");
  } catch {
    return undefined;
  }
}
