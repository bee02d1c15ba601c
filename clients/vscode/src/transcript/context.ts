import * as vscode from "vscode";
import type { Connection } from "../connection";
import { wired, wiredDiagnostic, wiredPosition } from "../knowledge/wired";
import type { ContextItem, ImageBlock, LinkBlock, ResourceBlock, TextBlock } from "../wire/generated";
import type { LastEditor } from "./editors";
import type { Chip } from "./messages";
import { problems, terminalText } from "./mentions";

export type PromptBlock = TextBlock | LinkBlock | ResourceBlock | ImageBlock;

/** Milliseconds without a change of the selection after which the server is asked. */
const PAUSE = 250;
const OPEN = 20;

/** What goes along with a prompt: what is around the cursor, and what the prompt names by `@`. */
export class PromptContext implements vscode.Disposable {
  private items: ContextItem[] = [];
  private named: { chip: Chip; block: TextBlock }[] = [];
  private timer: NodeJS.Timeout | undefined;
  private asked = 0;
  private naming = Promise.resolve();
  private readonly watches: vscode.Disposable[];

  constructor(
    private readonly connection: Connection,
    private readonly editors: LastEditor,
    private readonly offer: (chips: Chip[]) => void,
  ) {
    const soon = () => this.soon();
    this.watches = [
      vscode.window.onDidChangeActiveTextEditor(soon),
      vscode.window.onDidChangeTextEditorSelection(soon),
      vscode.languages.onDidChangeDiagnostics(soon),
      connection.onDidChangeState(soon),
    ];
    this.soon();
  }

  /** The blocks of those chips that were left in, as soon as all that is named is gathered. */
  async blocks(ids: readonly string[]): Promise<PromptBlock[]> {
    await this.naming;
    const chosen = this.items.filter((item, at) => ids.includes(idOf(item, at)));
    return [...chosen.map((item) => item.block), ...this.named.filter((one) => ids.includes(one.chip.id)).map((one) => one.block)];
  }

  /** The prompt names these by `@`: what they stand for is gathered, and said. */
  name(names: readonly string[]): Promise<void> {
    this.naming = this.naming.catch(() => undefined).then(() => this.gather(names));
    return this.naming;
  }

  private async gather(names: readonly string[]): Promise<void> {
    const found: typeof this.named = [];
    if (names.includes("problems")) found.push(problems());
    if (names.includes("terminal")) found.push(await terminalText());
    this.named = found;
    this.say();
  }

  /** Offers again what is known; the page is new. Of what is in one place, such as a function that is selected as a
   * whole, the first is offered. */
  say(): void {
    const chips = this.items.map(chipOf);
    const places = chips.map((chip) => chip.label);
    const unlike = chips.filter((chip, at) => places.indexOf(chip.label) === at);
    this.offer([...this.named.map((one) => one.chip), ...unlike]);
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const watch of this.watches) watch.dispose();
  }

  private soon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.ask(), PAUSE);
  }

  private async ask(): Promise<void> {
    const editor = this.editors.editor;
    const automatic = vscode.workspace.getConfiguration("magy").get("autoContext", true) && !strange(editor);
    this.asked += 1;
    const mine = this.asked;
    let items: ContextItem[] = [];
    if (editor && this.connection.state === "running") {
      try {
        ({ items } = await this.connection.request("magy/context/get", paramsOf(editor)));
      } catch {
        items = []; // a prompt goes without
      }
    }
    if (mine !== this.asked) return;
    this.items = automatic ? items : items.map((item) => ({ ...item, default: false }));
    this.say();
  }
}

/** Whether only a link or a search may have led there: to a file of no folder of the window, with nothing selected. */
function strange(editor: vscode.TextEditor | undefined): boolean {
  if (editor?.document.uri.scheme !== "file" || !editor.selection.isEmpty) return false;
  return vscode.workspace.workspaceFolders !== undefined && !vscode.workspace.getWorkspaceFolder(editor.document.uri);
}

function idOf(item: ContextItem, at: number): string {
  return `${item.kind} ${at} ${item.label}`;
}

function chipOf(item: ContextItem, at: number): Chip {
  return { id: idOf(item, at), kind: item.kind, label: item.label, default: item.default };
}

function paramsOf(editor: vscode.TextEditor) {
  const { document, selection } = editor;
  const visible = editor.visibleRanges[0];
  const others = vscode.window.tabGroups.all
    .flatMap((group) => group.tabs)
    .map((tab) => (tab.input instanceof vscode.TabInputText ? tab.input.uri : undefined))
    .filter((uri) => uri?.scheme === "file" && uri.toString() !== document.uri.toString());
  return {
    uri: document.uri.toString(),
    position: wiredPosition(selection.active),
    selection: selection.isEmpty ? null : wired(selection),
    visible: visible ? wired(visible) : null,
    diagnostics: vscode.languages.getDiagnostics(document.uri).slice(0, 200).map(wiredDiagnostic),
    openUris: [...new Set(others.map(String))].slice(0, OPEN),
  };
}
