import * as vscode from "vscode";
import { opened, STARTING } from "./languages";

/** Milliseconds without news after which what is told of a file counts as all: several extensions may look at it, and
 * some tell of its syntax before they have understood it. */
const QUIET = { problems: 300, none: 1_500 };

const underWay = new Map<string, Promise<vscode.Diagnostic[]>>();

/** What the extensions find wrong in a file. Most of them look only at files that have a tab, so one that has none gets
 * a tab behind the others meanwhile. */
export async function diagnosticsOf(file: vscode.Uri): Promise<vscode.Diagnostic[]> {
  const key = file.toString();
  const begun = underWay.get(key);
  if (begun) return begun;
  const known = vscode.languages.getDiagnostics(file);
  if (known.length || tabsOf(file).length) return known;
  const looking = lookedAt(file).finally(() => underWay.delete(key));
  underWay.set(key, looking);
  return looking;
}

async function lookedAt(file: vscode.Uri): Promise<vscode.Diagnostic[]> {
  const news = new News(file);
  let taken = false; // by the person, who looks at it now or has done so
  const shown = vscode.window.tabGroups.onDidChangeTabs(() => (taken ||= tabsOf(file).some((tab) => tab.isActive)));
  try {
    await opened(file);
    await vscode.commands.executeCommand("vscode.open", file, { background: true, preserveFocus: true, preview: false });
    await news.over(STARTING);
    return vscode.languages.getDiagnostics(file); // with the tab some of them go
  } finally {
    news.dispose();
    shown.dispose();
    if (!taken) await vscode.window.tabGroups.close(tabsOf(file).filter((tab) => !tab.isDirty), true);
  }
}

function tabsOf(file: vscode.Uri): vscode.Tab[] {
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
  return tabs.filter(({ input }) => input instanceof vscode.TabInputText && input.uri.toString() === file.toString());
}

/** What is told of the diagnostics of a file, also that there are none. */
class News implements vscode.Disposable {
  private last = 0;
  private readonly hearing: vscode.Disposable;

  constructor(private readonly file: vscode.Uri) {
    this.hearing = vscode.languages.onDidChangeDiagnostics(({ uris }) => {
      if (uris.some((uri) => uri.toString() === file.toString())) this.last = Date.now();
    });
  }

  /** Returns when there was news and then none for a while; after so many milliseconds in any case. */
  async over(most: number): Promise<void> {
    const end = Date.now() + most;
    while (Date.now() < end && !(this.last && Date.now() - this.last >= this.quiet)) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  private get quiet(): number {
    return vscode.languages.getDiagnostics(this.file).length ? QUIET.problems : QUIET.none;
  }

  dispose(): void {
    this.hearing.dispose();
  }
}
