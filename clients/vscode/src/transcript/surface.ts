import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import { sentence } from "../commands";
import type { Magy, Sessions } from "../magy";
import type { Reviews } from "../review/reviews";
import { closeChild, listChildren, waitFor } from "../sessions/children";
import { childName, rootOf, works } from "../sessions/rows";
import { activeFolder, folderName } from "../sessions/service";
import { firstLine } from "../sessions/summary";
import type { AnyUpdate, Child, SubscribeResult } from "../wire/generated";
import { applyCode, copyCode, insertCode } from "./codeblocks";
import { completions } from "./completion";
import { PromptContext } from "./context";
import type { LastEditor } from "./editors";
import type { FromPage, Kept, Offered, Picture, ToPage } from "./messages";
import { openLink, openPlace } from "./places";
import type { Remembered } from "./remembered";
import { sendPrompt } from "./send";

/** Milliseconds that updates are gathered before the page gets them. */
const GATHER = 16;
const OFFERED: Readonly<Record<Offered, string>> = {
  installServer: "magy.installServer",
  locateServer: "magy.locateServer",
  restartServer: "magy.restartServer",
  runDoctor: "magy.runDoctor",
  acceptAll: "magy.review.acceptAll",
  nextChange: "magy.review.nextChange",
  rejectAll: "magy.review.rejectAll",
  reviewAll: "magy.review.openAll",
  selectModel: "magy.selectModel",
  setApiKey: "magy.setApiKey",
};
/** Entries of an older page. */
const OLDER = 200;

/** The prompt of a turn that is undone, to be said otherwise; `text` also names what went along. */
export interface Offer {
  text: string;
  turnId: string;
}

/** Whose transcript a surface shows: one session's always, or the window's current one. */
export type Session = Pick<Sessions, "current" | "ensure">;

/** What a surface may ask of those who hold it. */
export interface Holder {
  readonly magy: Magy;
  readonly reviews: Reviews;
  readonly editors: LastEditor;
  /** Shows the transcript of a session, in a tab of its own or in the side bar. */
  show(sessionId: string): void;
  /** What is left there outlives the page, and the window. */
  readonly remembered: Remembered;
  /** The name of what it shows, for a tab. */
  titled(title: string): void;
}

/** One page with a transcript: in the side bar, or in an editor tab. Tells it what happens, does what it asks. */
export class Surface implements vscode.Disposable {
  private sessionId: string | undefined;
  private subscription: vscode.Disposable | undefined;
  private readonly parts: vscode.Disposable[];
  private readonly context: PromptContext;
  private readonly children = new Map<string, Child>();
  private updates: AnyUpdate[] = [];
  private pictures: Picture[] = [];
  private timer: NodeJS.Timeout | undefined;
  private root: string | undefined;
  private ready = false;
  private named = false;

  constructor(
    private readonly webview: vscode.Webview,
    private readonly holder: Holder,
    private readonly session: Session,
  ) {
    const { connection } = holder.magy;
    this.context = new PromptContext(connection, holder.editors, (chips) => this.tell({ type: "chips", chips }));
    this.parts = [
      this.context,
      webview.onDidReceiveMessage((message: FromPage) => void this.receive(message)),
      connection.onDidChangeState((state) => {
        this.tellConnection();
        if (state === "running") void this.learnOptions();
      }),
      holder.reviews.onDidChange(() => this.tellReview()),
      connection.on("magy/child/changed", ({ child }) => this.heardOf(child)),
      connection.on("magy/interaction/changed", (news) => this.tell({ type: "interactions", news })),
    ];
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.become(undefined);
    for (const part of this.parts) part.dispose();
  }

  /** The page is out of sight, and gone with it: it asks anew when it is back. */
  hidden(): void {
    this.ready = false;
    this.become(undefined);
  }

  /** Shows the session that is to be shown now. */
  follow(): void {
    const next = this.session.current;
    if (!this.ready || (next === this.sessionId && this.subscription)) return;
    this.become(next);
    this.updates = [];
    if (next === undefined) {
      this.tell({ type: "none" });
      void this.learnOptions();
      return;
    }
    this.subscription = this.holder.magy.sessions.subscribe(next, {
      page: (page, resumed) => this.attached(next, page, resumed),
      update: (update) => this.gather(update),
      failed: (error) => this.tell({ type: "failed", message: sentence(error) }),
    });
  }

  /** Whether the page is there, and hears. */
  get isThere(): boolean {
    return this.ready;
  }

  insert(text: string): void {
    this.tell({ type: "insert", text });
  }

  offer(offered: Offer): void {
    this.tell({ type: "offer", ...offered });
  }

  focus(): void {
    this.tell({ type: "focus" });
  }

  private become(sessionId: string | undefined): void {
    this.subscription?.dispose();
    this.subscription = undefined;
    this.sessionId = sessionId;
    this.holder.magy.sessions.see(this, sessionId);
  }

  // --- telling the page ---------------------------------------------------------------------------

  private tell(message: ToPage): void {
    if (this.ready) void this.webview.postMessage(message);
  }

  private tellConnection(): void {
    const { state, problem } = this.holder.magy.connection;
    this.tell({ type: "connection", state, message: problem });
  }

  private tellReview(): void {
    this.tell({ type: "review", ...this.holder.reviews.sum });
  }

  private attached(sessionId: string, page: SubscribeResult, resumed: boolean): void {
    this.flush();
    const { session } = page.summary;
    this.root = session.root ?? session.cwd;
    this.named = Boolean(session.title);
    this.holder.titled(session.title ?? "New session");
    const about = { parent: this.nameOf(parent(sessionId)), folder: folderName(this.root) };
    this.tell({ type: "attached", sessionId, page, resumed, ...about });
    void this.learnChildren(sessionId);
  }

  /** Without a session: asks what one would begin with, so that the person can choose before. */
  private async learnOptions(): Promise<void> {
    const { connection, log } = this.holder.magy;
    if (!this.ready || this.sessionId !== undefined || connection.state !== "running") return;
    try {
      const { configOptions } = await connection.request("magy/session/options", { cwd: activeFolder()?.uri.fsPath });
      if (this.sessionId === undefined) this.tell({ type: "options", options: configOptions });
    } catch (error) {
      log.warn(`The options of a new session: ${sentence(error)}`);
    }
  }

  private async learnChildren(sessionId: string): Promise<void> {
    try {
      for (const child of await listChildren(this.holder.magy.connection, rootOf(sessionId), true)) this.children.set(child.sessionId, child);
    } catch (error) {
      this.holder.magy.log.warn(`The children of ${sessionId}: ${sentence(error)}`);
    }
    this.tell({ type: "children", children: [...this.children.values()] });
  }

  private heardOf(child: Child): void {
    this.children.set(child.sessionId, child);
    this.tell({ type: "children", children: [child] });
  }

  private gather(update: AnyUpdate): void {
    const title = update.sessionUpdate === "session_info_update" ? update.title : this.firstWords(update);
    if (title) this.holder.titled(title);
    this.updates.push(update);
    this.timer ??= setTimeout(() => this.flush(), GATHER);
  }

  private firstWords(update: AnyUpdate): string {
    if (this.named || update.sessionUpdate !== "user_message") return "";
    this.named = true;
    return firstLine(update);
  }

  private flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const { updates, sessionId } = this;
    this.updates = [];
    if (updates.length && sessionId) this.tell({ type: "updates", sessionId, updates });
  }

  private nameOf(sessionId: string | undefined): string {
    const child = sessionId === undefined ? undefined : this.children.get(sessionId);
    return child ? childName(child) : "";
  }

  // --- what the page asks ---------------------------------------------------------------------------

  private async receive(message: FromPage): Promise<void> {
    try {
      await this.perform(message);
    } catch (error) {
      if (error instanceof vscode.CancellationError) return;
      this.holder.magy.log.error(`${message.type}: ${sentence(error)}`);
      this.tell({ type: "say", message: sentence(error) });
    }
  }

  private async perform(message: FromPage): Promise<void> {
    const { connection } = this.holder.magy;
    switch (message.type) {
      case "ready":
        return this.begin(message.kept);
      case "left":
        return this.holder.remembered.write(message.left);
      case "pictures":
        this.pictures = message.pictures;
        return;
      case "prompt":
        return this.prompt(message);
      case "complete":
        return this.complete(message);
      case "mentions":
        return this.context.name(message.names);
      case "open":
        return openPlace(message, this.root);
      case "link":
        return openLink(message.href, this.root);
      case "text":
        await vscode.window.showTextDocument(await vscode.workspace.openTextDocument({ content: message.text, language: message.language }));
        return;
      case "copy":
        return vscode.env.clipboard.writeText(message.text);
      case "code":
        return this.code(message);
      case "answer":
        return this.answer(message);
      case "child":
        return this.child(message);
      case "show":
        return this.holder.show(message.sessionId);
      case "run":
        await vscode.commands.executeCommand(OFFERED[message.command]);
        return;
      case "lookAgain":
        return this.learnOptions();
      case "dropped":
        return this.dropped(message.uris);
      case "option": {
        const sessionId = await this.session.ensure();
        await connection.request("magy/session/set_config_option", { sessionId, configId: message.configId, value: message.value });
        return;
      }
      default:
        return this.performHere(message);
    }
  }

  /** What is about the session that is shown. */
  private async performHere(message: FromPage): Promise<void> {
    const { connection } = this.holder.magy;
    const { sessionId } = this;
    if (sessionId === undefined) return;
    switch (message.type) {
      case "older":
        return this.older(sessionId, message.before);
      case "cancel":
        await connection.request("magy/session/cancel", { sessionId });
        return;
      case "compact":
        await vscode.commands.executeCommand("magy.compactSession", { sessionId });
        return;
      case "drop":
        await connection.request("magy/queue/drop", { sessionId, messageIds: [message.messageId] });
        return;
      case "reorder":
        await connection.request("magy/queue/reorder", { sessionId, order: message.order });
        return;
      case "preview":
        return this.preview(sessionId, message.turnId);
      case "restore":
        return this.restore(sessionId, message);
      default:
        return;
    }
  }

  private begin(kept: Kept): void {
    this.ready = true;
    this.subscription?.dispose();
    this.subscription = undefined;
    this.holder.magy.log.debug(`A transcript is shown; the page before it had ${kept.sessionId ?? "no session"}`);
    this.tellConnection();
    this.tell({ type: "left", left: this.holder.remembered.left });
    if (this.pictures.length) this.tell({ type: "pictures", pictures: this.pictures });
    this.tellReview();
    this.follow();
    this.context.say();
  }

  private async prompt(message: Extract<FromPage, { type: "prompt" }>): Promise<void> {
    try {
      const along = await this.context.blocks(message.along.context);
      const { sessionId } = this;
      // What takes the place of a turn is for the session that has this turn.
      const ensure = () => (message.replaces && sessionId ? Promise.resolve(sessionId) : this.session.ensure());
      await sendPrompt(this.holder.magy, ensure, message, along);
      this.tell({ type: "accepted", messageId: message.messageId });
    } catch (error) {
      const why = error instanceof vscode.CancellationError ? "Not sent: no folder was chosen" : sentence(error);
      if (this.ready) this.tell({ type: "refused", messageId: message.messageId, text: message.text, message: why });
      else this.keepDraft(message.text);
    }
    await this.context.name([]);
  }

  /** Words that no page is there for now go back into the input of the next one. */
  private keepDraft(text: string): void {
    const { remembered } = this.holder;
    const left = remembered.left ?? { text: "", sessionId: this.session.current ?? "" };
    if (!left.text.includes(text)) remembered.write({ ...left, text: [left.text, text].filter(Boolean).join("\n\n") });
  }

  private async complete(message: Extract<FromPage, { type: "complete" }>): Promise<void> {
    const cwd = activeFolder()?.uri.fsPath;
    const where = this.sessionId ? { sessionId: this.sessionId } : cwd ? { cwd } : {};
    const found = await completions(this.holder.magy.connection, message.before, where);
    this.tell({ type: "completions", id: message.id, ...found });
  }

  private async code(message: Extract<FromPage, { type: "code" }>): Promise<void> {
    const { editors, magy } = this.holder;
    const run = {
      copy: () => copyCode(message.text),
      insert: () => insertCode(editors, message.text),
      apply: () => applyCode(magy.connection, editors, message.text, message.info, this.root),
    }[message.action];
    try {
      this.tell({ type: "codeDone", id: message.id, message: await run(), failed: false });
    } catch (error) {
      if (error instanceof vscode.CancellationError) return;
      this.tell({ type: "codeDone", id: message.id, message: sentence(error), failed: true });
    }
  }

  private async answer(message: Extract<FromPage, { type: "answer" }>): Promise<void> {
    const { interactionId, sessionId, outcome, scope, reason } = message;
    const result = await this.holder.magy.questions.respond({ interactionId, sessionId }, { outcome, scope, reason });
    if (!result) return;
    if (result.accepted) this.tell({ type: "answered", interactionId, outcome, scope, reason });
    else this.tell({ type: "say", message: `This was ${result.winner ?? "answered"} before` });
  }

  private async child(message: Extract<FromPage, { type: "child" }>): Promise<void> {
    const { connection } = this.holder.magy;
    const { sessionId } = message;
    const name = this.nameOf(sessionId) || "the agent";
    const known = this.children.get(sessionId);
    switch (message.action) {
      case "show":
        return this.holder.show(sessionId);
      case "wait":
        return waitFor(connection, sessionId, name, () => this.holder.show(sessionId));
      case "stop":
        await connection.request("magy/session/cancel", { sessionId });
        return;
      case "close":
        return closeChild(connection, sessionId, name, known !== undefined && works(known));
    }
  }

  private dropped(uris: readonly string[]): void {
    const mentions = uris.map((uri) => vscode.workspace.asRelativePath(vscode.Uri.parse(uri), false));
    this.insert(mentions.map((path) => (/[\s"]/.test(path) ? `@"${path}"` : `@${path}`)).join(" ") + " ");
  }

  private async older(sessionId: string, before: number): Promise<void> {
    try {
      const page = await this.holder.magy.connection.request("magy/session/events", { sessionId, before, limit: OLDER });
      this.tell({ type: "older", sessionId, before, page });
    } catch (error) {
      this.tell({ type: "olderFailed", message: sentence(error) });
    }
  }

  private async preview(sessionId: string, turnId: string): Promise<void> {
    try {
      const preview = await this.holder.magy.connection.request("magy/checkpoint/preview", { sessionId, turnId });
      this.tell({ type: "preview", turnId, preview });
    } catch (error) {
      this.tell({ type: "preview", turnId, message: sentence(error) });
    }
  }

  private async restore(sessionId: string, message: Extract<FromPage, { type: "restore" }>): Promise<void> {
    const { turnId, files, conversation } = message;
    try {
      const result = await this.holder.magy.connection.request("magy/checkpoint/restore", {
        sessionId, turnId, files, conversation, requestKey: `restore-${randomUUID()}`,
      });
      this.tell({ type: "restored", turnId, result });
    } catch (error) {
      this.tell({ type: "restored", turnId, message: sentence(error) });
    }
  }
}

function parent(sessionId: string): string | undefined {
  const at = sessionId.lastIndexOf("/");
  return at > 0 ? sessionId.slice(0, at) : undefined;
}
