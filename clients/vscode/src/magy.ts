import type { Disposable, Event, LogOutputChannel } from "vscode";
import type { Connection } from "./connection";
import type {
  AnyUpdate,
  Interaction,
  RespondParams,
  RespondResult,
  SubscribeResult,
  Summary,
} from "./wire/generated";

/** What every part of the extension gets. */
export interface Magy {
  readonly connection: Connection;
  readonly sessions: Sessions;
  readonly questions: Questions;
  readonly log: LogOutputChannel;
}

/** Hears of one session. */
export interface SessionListener {
  /**
   * The session as it is now. Without `resumed`, `page.events` are its newest entries, and what was
   * shown of it before is void. With `resumed` (the server was started again, or another part of
   * this window began to listen) they are those that this listener has not had yet; deltas that no
   * entry replaced are void.
   */
  page(page: SubscribeResult, resumed: boolean): void;
  /** What happens from then on, in order: entries have a `seq`, deltas have none. */
  update(update: AnyUpdate): void;
  /** The session cannot be subscribed to: it was deleted, say. Nothing more comes. */
  failed(error: Error): void;
}

/** The sessions that this window works with. */
export interface Sessions {
  /** The session that this window shows; children are sessions, too. */
  readonly current: string | undefined;
  readonly onDidChangeCurrent: Event<string | undefined>;
  /** The current session at a glance, kept up to date; undefined before it is known. */
  readonly summary: Summary | undefined;
  readonly onDidChangeSummary: Event<Summary | undefined>;
  /** Makes a session the current one. The transcript shows it; nothing takes the focus. */
  show(sessionId: string): void;
  /** Returns the session that is being made, or else the current one; or makes one. */
  ensure(): Promise<string>;
  /**
   * Makes a session for a folder and shows it. Without `cwd` it is the active editor's, or the one
   * that the person chooses: throws CancellationError if they choose none.
   */
  create(options?: { cwd?: string; agent?: string; model?: string }): Promise<string>;
  subscribe(sessionId: string, listener: SessionListener): Disposable;
  /** Notes which session a transcript shows that can be seen; undefined: it cannot, or shows none. */
  see(transcript: object, sessionId: string | undefined): void;
  /** Whether a transcript that can be seen shows this session, or one above it. */
  inSight(sessionId: string): boolean;
}

/** The questions that wait for a person, in all sessions of this window's folders. */
export interface Questions {
  readonly open: readonly Interaction[];
  readonly onDidChange: Event<void>;
  /** Answers a question; the first answer wins, and the result says if this was it. */
  /** Has the person fill in its form first, if it has one; without a result they left it open. */
  respond(question: Pick<Interaction, "interactionId" | "sessionId">, answer: Answer): Promise<RespondResult | undefined>;
  /** Asks the person: this question, or the one that has waited longest. */
  ask(question?: Interaction): Promise<void>;
}

export type Answer = Pick<RespondParams, "outcome" | "scope" | "reason">;
