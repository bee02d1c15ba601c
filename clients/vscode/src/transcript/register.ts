import * as vscode from "vscode";
import { registerCommands } from "../commands";
import type { Magy } from "../magy";
import type { Reviews } from "../review/reviews";
import { LastEditor } from "./editors";
import { optionsOf, pageOf } from "./html";
import { watchTerminals } from "./mentions";
import type { Kept } from "./messages";
import { Remembered } from "./remembered";
import { type Holder, type Offer, Surface } from "./surface";

const VIEW = "magy.transcript";
const PANEL = "magy.transcript";

/** What every transcript works with. */
type Parts = Pick<Holder, "magy" | "reviews" | "editors">;

/** The transcript: a view in the side bar that follows the window's session, and tabs of sessions. */
export function registerTranscript(context: vscode.ExtensionContext, magy: Magy, reviews: Reviews): void {
  const editors = new LastEditor();
  const parts: Parts = { magy, reviews, editors };
  const tabs = new Tabs(context, parts);
  const view = new View(context, parts, tabs);
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
    "magy.offerPrompt": async (offer: Offer) => {
      await view.focus();
      view.offer(offer);
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
  private offered: Offer | undefined;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly parts: Parts,
    private readonly tabs: Tabs,
  ) {
    context.subscriptions.push(parts.magy.sessions.onDidChangeCurrent(() => this.surface?.follow()));
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    const { webview } = view;
    webview.options = optionsOf(this.context.extensionUri);
    const surface = new Surface(
      webview,
      {
        ...this.parts,
        show: (sessionId) => (sessionId === this.parts.magy.sessions.current ? void this.focus() : this.tabs.show(sessionId)),
        remembered: new Remembered(this.context, "view"),
        titled: () => undefined, // the page says it
      },
      this.parts.magy.sessions,
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
  offer(offer: Offer): void {
    if (this.surface?.isThere) this.surface.offer(offer);
    else this.offered = offer;
  }

  private begun(): void {
    if (this.waiting) this.surface?.insert(this.waiting);
    if (this.offered) this.surface?.offer(this.offered);
    this.waiting = "";
    this.offered = undefined;
  }
}

/** Transcripts in editor tabs, one for each session at most; VS Code opens them again with the window. */
class Tabs implements vscode.WebviewPanelSerializer<Kept | undefined> {
  private readonly panels = new Map<string, vscode.WebviewPanel>();

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly parts: Parts,
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
    const sessionId = kept?.sessionId || this.parts.magy.sessions.current;
    if (sessionId) this.fill(panel, sessionId);
    else panel.dispose();
    return Promise.resolve();
  }

  private fill(panel: vscode.WebviewPanel, sessionId: string): void {
    const surface = new Surface(
      panel.webview,
      {
        ...this.parts,
        show: (id) => this.show(id),
        remembered: new Remembered(this.context, sessionId),
        titled: (title) => (panel.title = title.length > 40 ? `${title.slice(0, 39)}…` : title),
      },
      { current: sessionId, ensure: () => Promise.resolve(sessionId) },
    );
    this.panels.set(sessionId, panel);
    const media = vscode.Uri.joinPath(this.context.extensionUri, "media");
    // Here, unlike in the activity bar, the picture has to have the colour itself.
    panel.iconPath = { light: vscode.Uri.joinPath(media, "magy.svg"), dark: vscode.Uri.joinPath(media, "magy-dark.svg") };
    panel.onDidChangeViewState(() => !panel.visible && surface.hidden());
    panel.onDidDispose(() => {
      surface.dispose();
      if (this.panels.get(sessionId) === panel) this.panels.delete(sessionId);
    });
    panel.webview.html = pageOf(panel.webview, this.context.extensionUri, "editor");
  }
}
