import * as vscode from "vscode";
import { registerCommands } from "../commands";
import type { Magy } from "../magy";
import { Draft } from "./draft";
import { LastEditor } from "./editors";
import { optionsOf, pageOf } from "./html";
import { watchTerminals } from "./mentions";
import type { Kept } from "./messages";
import { Surface } from "./surface";

const VIEW = "magy.transcript";
const PANEL = "magy.transcript";
const DRAFT = "magy.draft";

/** The transcript: a view in the side bar that follows the window's session, and tabs of sessions. */
export function registerTranscript(context: vscode.ExtensionContext, magy: Magy): void {
  const editors = new LastEditor();
  const tabs = new Tabs(context, magy, editors);
  const view = new View(context, magy, editors, tabs);
  context.subscriptions.push(
    editors,
    watchTerminals(),
    vscode.window.registerWebviewViewProvider(VIEW, view),
    vscode.window.registerWebviewPanelSerializer(PANEL, tabs),
  );
  registerCommands(context, magy.log, {
    "magy.focusTranscript": () => view.focus(),
    "magy.interrupt": async (sessionId?: string) => {
      const id = typeof sessionId === "string" ? sessionId : (tabs.active ?? magy.sessions.current);
      if (id) await magy.connection.request("magy/session/cancel", { sessionId: id });
    },
    "magy.mentionSelection": async () => {
      const mention = mentionOf(editors.editor);
      await view.focus();
      view.insert(mention);
    },
    "magy.offerPrompt": async (text: string) => {
      await view.focus();
      view.offer(text);
    },
    "magy.openTranscriptTab": (sessionId?: string) => {
      const id = typeof sessionId === "string" ? sessionId : magy.sessions.current;
      if (id) tabs.show(id);
      else void vscode.window.showInformationMessage("No session is shown yet: write a prompt first.");
    },
  });
}

/** The file and lines that are selected, as a prompt mentions them. */
function mentionOf(editor: vscode.TextEditor | undefined): string {
  if (!editor) throw new Error("No file is open.");
  const path = vscode.workspace.asRelativePath(editor.document.uri, false);
  const { start, end } = editor.selection;
  const last = end.character === 0 && end.line > start.line ? end.line : end.line + 1;
  const lines = editor.selection.isEmpty ? "" : `:${start.line + 1}-${last}`;
  return `${/[\s"]/.test(path) ? `@"${path}"` : `@${path}`}${lines} `;
}

class View implements vscode.WebviewViewProvider {
  private surface: Surface | undefined;
  /** Texts that wait for the page to be there. */
  private waiting = "";
  private offered = "";

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly magy: Magy,
    private readonly editors: LastEditor,
    private readonly tabs: Tabs,
  ) {
    context.subscriptions.push(magy.sessions.onDidChangeCurrent(() => this.surface?.follow()));
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    const { webview } = view;
    webview.options = optionsOf(this.context.extensionUri);
    const surface = new Surface(
      webview,
      {
        magy: this.magy,
        editors: this.editors,
        show: (sessionId) => (sessionId === this.magy.sessions.current ? void this.focus() : this.tabs.show(sessionId)),
        draft: new Draft(this.context.workspaceState, DRAFT),
        titled: () => undefined, // the page says it
      },
      () => this.magy.sessions.current,
    );
    this.surface = surface;
    view.onDidChangeVisibility(() => !view.visible && surface.hidden());
    view.onDidDispose(() => {
      surface.dispose();
      this.surface = undefined;
    });
    webview.onDidReceiveMessage((message: { type: string }) => message.type === "ready" && this.begun());
    webview.html = pageOf(webview, this.context.extensionUri, "view");
  }

  async focus(): Promise<void> {
    await vscode.commands.executeCommand(`${VIEW}.focus`);
    this.surface?.focus();
  }

  insert(text: string): void {
    if (this.surface?.isThere) this.surface.insert(text);
    else this.waiting += text;
  }

  /** Puts what was said into the input if that is empty. */
  offer(text: string): void {
    if (this.surface?.isThere) this.surface.offer(text);
    else this.offered = text;
  }

  private begun(): void {
    if (this.waiting) this.surface?.insert(this.waiting);
    if (this.offered) this.surface?.offer(this.offered);
    this.waiting = this.offered = "";
  }
}

/** Transcripts in editor tabs, one for each session at most; VS Code opens them again with the window. */
class Tabs implements vscode.WebviewPanelSerializer<Kept | undefined> {
  private readonly panels = new Map<string, vscode.WebviewPanel>();

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly magy: Magy,
    private readonly editors: LastEditor,
  ) {}

  /** The session of the tab that is in front and has the focus. */
  get active(): string | undefined {
    return [...this.panels].find(([, panel]) => panel.active)?.[0];
  }

  show(sessionId: string): void {
    const known = this.panels.get(sessionId);
    if (known) return known.reveal();
    const column = vscode.ViewColumn.Active;
    const panel = vscode.window.createWebviewPanel(PANEL, "Magy", column, { ...optionsOf(this.context.extensionUri), enableFindWidget: true });
    this.fill(panel, sessionId);
  }

  deserializeWebviewPanel(panel: vscode.WebviewPanel, kept: Kept | undefined): Promise<void> {
    panel.webview.options = optionsOf(this.context.extensionUri);
    const sessionId = kept?.sessionId || this.magy.sessions.current;
    if (sessionId) this.fill(panel, sessionId);
    else panel.dispose();
    return Promise.resolve();
  }

  private fill(panel: vscode.WebviewPanel, sessionId: string): void {
    const surface = new Surface(
      panel.webview,
      {
        magy: this.magy,
        editors: this.editors,
        show: (id) => this.show(id),
        draft: new Draft(this.context.workspaceState, `${DRAFT} ${sessionId}`),
        titled: (title) => (panel.title = title.length > 40 ? `${title.slice(0, 39)}…` : title),
      },
      () => sessionId,
    );
    this.panels.set(sessionId, panel);
    panel.iconPath = vscode.Uri.joinPath(this.context.extensionUri, "media", "magy.svg");
    panel.onDidChangeViewState(() => !panel.visible && surface.hidden());
    panel.onDidDispose(() => {
      surface.dispose();
      if (this.panels.get(sessionId) === panel) this.panels.delete(sessionId);
    });
    panel.webview.html = pageOf(panel.webview, this.context.extensionUri, "editor");
  }
}
