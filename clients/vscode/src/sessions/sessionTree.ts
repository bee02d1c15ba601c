import * as vscode from "vscode";
import type { Connection } from "../connection";
import type { Sessions } from "../magy";
import type { ListParams, ListResult, SessionInfo } from "../wire/generated";
import { rootOf, sessionRow } from "./rows";
import { folderName } from "./service";

const PAGE = 50;
/** Milliseconds in which several changes of the list count as one. */
const PAUSE = 150;

interface More {
  cursor: string;
}
type Node = SessionInfo | More;

/** The sessions of the window's folders, the newest first. */
export class SessionTree implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private sessions: SessionInfo[] = [];
  private cursor: string | null = null;
  private pages = 1;
  private asked = 0;
  private pending: NodeJS.Timeout | undefined;
  private readonly ends: vscode.Disposable[];
  readonly onDidChangeTreeData = this.changed.event;

  constructor(
    private readonly connection: Connection,
    private readonly current: Sessions,
  ) {
    this.ends = [
      connection.on("magy/session/listChanged", () => this.refresh()),
      connection.onDidChangeState(() => this.refresh()),
      current.onDidChangeCurrent(() => this.changed.fire()),
      vscode.workspace.onDidChangeWorkspaceFolders(() => this.refresh()),
    ];
  }

  refresh(): void {
    this.pending ??= setTimeout(() => {
      this.pending = undefined;
      this.load().then(
        () => this.changed.fire(),
        () => undefined, // the state of the connection tells
      );
    }, PAUSE);
  }

  more(): void {
    this.pages += 1;
    this.refresh();
  }

  getChildren(): Node[] {
    return this.cursor ? [...this.sessions, { cursor: this.cursor }] : this.sessions;
  }

  getTreeItem(node: Node): vscode.TreeItem {
    if ("cursor" in node) {
      const item = new vscode.TreeItem("Show older ones");
      item.command = { command: "magy.olderSessions", title: "Show Older Sessions" };
      return item;
    }
    const row = sessionRow(node, Date.now(), this.connection.alive);
    const shown = this.current.current !== undefined && rootOf(this.current.current) === node.sessionId;
    const label = shown ? { label: row.label, highlights: [[0, row.label.length] as [number, number]] } : row.label;
    const item = new vscode.TreeItem(label);
    item.id = node.sessionId;
    const folder = folderName(node.root ?? node.cwd);
    item.description = [shown && "shown", folder, row.description].filter(Boolean).join(" · ");
    item.iconPath = new vscode.ThemeIcon(row.icon);
    item.tooltip = row.tooltip;
    item.contextValue = row.context;
    item.command = { command: "magy.openSession", title: "Open Session", arguments: [node] };
    return item;
  }

  dispose(): void {
    clearTimeout(this.pending);
    for (const end of this.ends) void end.dispose();
    this.changed.dispose();
  }

  private async load(): Promise<void> {
    if (this.connection.state !== "running") return;
    const nth = (this.asked += 1);
    const { sessions, cursor } = await list(this.connection, PAGE * this.pages);
    if (nth !== this.asked) return; // it was asked again meanwhile, and that answer is newer
    this.sessions = sessions;
    this.cursor = cursor;
    // Before the view has asked for its rows it counts as empty.
    await vscode.commands.executeCommand("setContext", "magy.noSessions", sessions.length === 0);
  }
}

/** The sessions of the window's folders; without folders, all. The newest come first. */
export async function list(
  connection: Connection,
  most: number,
): Promise<{ sessions: SessionInfo[]; cursor: string | null }> {
  const folders = vscode.workspace.workspaceFolders?.map((folder) => folder.uri.fsPath);
  const found: SessionInfo[] = [];
  let left: string | null = null;
  for (const cwd of folders ?? [null]) {
    let cursor: string | null = null;
    do {
      const asked: ListParams = { cwd, only: cwd !== null, cursor, limit: Math.min(most, 200) };
      const page: ListResult = await connection.request("magy/session/list", asked);
      found.push(...page.sessions);
      cursor = page.nextCursor;
    } while (cursor && found.length < most);
    left ??= cursor;
  }
  const newest = found.sort((a, b) => (b.updatedAt ?? "").localeCompare(a.updatedAt ?? ""));
  return { sessions: newest, cursor: left };
}
