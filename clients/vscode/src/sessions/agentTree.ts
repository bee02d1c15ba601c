import * as vscode from "vscode";
import type { Connection } from "../connection";
import type { Sessions } from "../magy";
import type { Child } from "../wire/generated";
import { listChildren } from "./children";
import { childRow, childrenOf, rootOf } from "./rows";

/** The agents below the current session, kept in step by the server. */
export class AgentTree implements vscode.TreeDataProvider<Child>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly children = new Map<string, Child>();
  private readonly ends: vscode.Disposable[];
  private closedToo = false;
  readonly onDidChangeTreeData = this.changed.event;

  constructor(
    private readonly connection: Connection,
    private readonly sessions: Sessions,
  ) {
    this.ends = [
      connection.on("magy/child/changed", ({ child, deleted }) => this.take(child, deleted)),
      connection.onDidChangeState((state) => {
        if (state === "running") this.reload();
        else this.changed.fire();
      }),
      sessions.onDidChangeCurrent(() => this.reload()),
    ];
  }

  get all(): Iterable<Child> {
    return this.children.values();
  }

  get onDidChange(): vscode.Event<void> {
    return this.changed.event;
  }

  /** Shows those that are closed, or hides them again. */
  toggleClosed(): void {
    this.closedToo = !this.closedToo;
    this.reload();
  }

  getChildren(parent?: Child): Child[] {
    const root = this.root;
    if (!root) return [];
    const below = childrenOf(this.children.values(), parent?.sessionId ?? root);
    return this.closedToo ? below : below.filter((child) => child.state !== "closed");
  }

  getParent(child: Child): Child | undefined {
    return this.children.get(child.parentSessionId);
  }

  getTreeItem(child: Child): vscode.TreeItem {
    const row = childRow(child, this.connection.alive);
    const below = this.getChildren(child).length > 0;
    const { Expanded, None } = vscode.TreeItemCollapsibleState;
    const item = new vscode.TreeItem(row.label, below ? Expanded : None);
    item.id = child.sessionId;
    item.description = row.description;
    item.iconPath = new vscode.ThemeIcon(row.icon);
    item.tooltip = row.tooltip;
    item.contextValue = row.context;
    item.command = { command: "magy.openAgent", title: "Show Transcript", arguments: [child] };
    return item;
  }

  dispose(): void {
    for (const end of this.ends) void end.dispose();
    this.changed.dispose();
  }

  private get root(): string | undefined {
    return this.sessions.current && rootOf(this.sessions.current);
  }

  private take(child: Child, deleted: boolean): void {
    if (rootOf(child.sessionId) !== this.root) return;
    if (deleted) this.children.delete(child.sessionId);
    else this.children.set(child.sessionId, child);
    this.changed.fire();
  }

  private reload(): void {
    this.load().catch(() => undefined); // the state of the connection tells
  }

  private async load(): Promise<void> {
    const parentSessionId = this.root;
    const asks = parentSessionId !== undefined && this.connection.state === "running";
    const found = asks ? await listChildren(this.connection, parentSessionId, this.closedToo) : [];
    if (parentSessionId !== this.root) return; // another session is shown by now
    this.children.clear();
    for (const child of found) this.children.set(child.sessionId, child);
    this.changed.fire();
  }
}
