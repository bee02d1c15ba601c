import * as vscode from "vscode";
import type { ReviewEntry } from "../wire/generated";
import { counted, isProposed } from "./hunks";
import type { Reviews } from "./reviews";
import { drawsInGutter } from "./settings";

/**
 * The files under review in the Source Control view, and the editor's own quick diff of them:
 * marks beside the line numbers, and a diff in place. It is there only while something waits.
 */
export class ReviewSourceControl implements vscode.QuickDiffProvider, vscode.Disposable {
  private shown: Shown | undefined;
  private bases = new Map<string, vscode.Uri>();
  private readonly disposables: vscode.Disposable[];

  constructor(private readonly reviews: Reviews) {
    this.disposables = [
      reviews.onDidChange(() => void this.refresh()),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("magy.review")) void this.refresh();
      }),
    ];
    void this.refresh();
  }

  dispose(): void {
    vscode.Disposable.from(...this.disposables).dispose();
    this.shown?.control.dispose();
  }

  provideOriginalResource(uri: vscode.Uri): vscode.Uri | undefined {
    return this.bases.get(uri.toString());
  }

  private async refresh(): Promise<void> {
    const entries = this.reviews.all;
    if (entries.length === 0) {
      this.shown?.control.dispose();
      this.shown = undefined;
      this.bases.clear();
      return;
    }
    this.shown ??= this.make();
    const { control, applied, proposed } = this.shown;
    applied.resourceStates = entries.filter((one) => !isProposed(one)).map(row);
    proposed.resourceStates = entries.filter(isProposed).map(row);
    control.count = entries.reduce((sum, entry) => sum + entry.pending, 0);
    await this.learnBases(entries);
  }

  private make(): Shown {
    const control = vscode.scm.createSourceControl("magy", "Magy Review");
    control.inputBox.visible = false;
    const applied = control.createResourceGroup("applied", "Under Review");
    const proposed = control.createResourceGroup("proposed", "Proposed");
    applied.hideWhenEmpty = proposed.hideWhenEmpty = true;
    return { control, applied, proposed };
  }

  /** The editor asks for the base of a file once; when a file comes under review it has to ask
   * again. */
  private async learnBases(entries: readonly ReviewEntry[]): Promise<void> {
    const wanted = drawsInGutter() ? entries.filter((one) => !isProposed(one)) : [];
    const uris = new Set(wanted.map((one) => vscode.Uri.parse(one.uri).toString()));
    const kept = [...this.bases].filter(([uri]) => uris.has(uri));
    const bases = new Map(kept);
    for (const entry of wanted) {
      const key = vscode.Uri.parse(entry.uri).toString();
      if (bases.has(key)) continue;
      const file = await this.reviews.get(entry).catch(() => undefined);
      if (file) bases.set(key, vscode.Uri.parse(file.baseUri));
    }
    const same = bases.size === this.bases.size && kept.length === bases.size;
    this.bases = bases;
    if (this.shown && !same) this.shown.control.quickDiffProvider = newOf(this);
  }
}

interface Shown {
  control: vscode.SourceControl;
  applied: vscode.SourceControlResourceGroup;
  proposed: vscode.SourceControlResourceGroup;
}

function newOf(provider: vscode.QuickDiffProvider): vscode.QuickDiffProvider {
  return { provideOriginalResource: (uri, token) => provider.provideOriginalResource?.(uri, token) };
}

function row(entry: ReviewEntry): vscode.SourceControlResourceState {
  const uri = vscode.Uri.parse(entry.uri);
  return {
    resourceUri: uri,
    contextValue: entry.mode,
    command: { command: "magy.review.openDiff", title: "Show Changes", arguments: [uri] },
    decorations: {
      strikeThrough: entry.status === "deleted",
      tooltip: `${counted(entry.pending, "change")} (+${entry.added} −${entry.removed}), ${entry.status}`,
    },
  };
}
