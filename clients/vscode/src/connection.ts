import type { ChildProcess } from "node:child_process";
import * as vscode from "vscode";
// Only the types: the library is most of what this extension loads, and is loaded while the server
// starts, so that VS Code does not wait for it.
import type * as Library from "vscode-languageclient/node";
import type {
  ApplyWorkspaceEditParams,
  ApplyWorkspaceEditResult,
  LanguageClient,
  LanguageClientOptions,
} from "vscode-languageclient/node";
import { MagyError, ServerGone } from "./wire/errors";
import {
  type Announcement,
  EDITOR_REQUESTS,
  type EditorRequests,
  NOTIFICATIONS,
  type Notifications,
  type Requests,
} from "./wire/generated";

/** The version of the wire that this extension speaks. */
export const PROTOCOL = 1;

/**
 * stopped: it was not started yet, or was asked to end; missing: no server was found; silent: it
 * has not answered for long; dead: it ended without being asked to, or could not start.
 */
export type ConnectionState = "stopped" | "missing" | "starting" | "running" | "silent" | "dead";

/** What the server says about itself. */
export interface ServerAbout {
  version: string;
  protocol: number;
}

/** A command of the server, which a code action or a lens ran. */
export interface RanCommand {
  command: string;
  arguments: unknown[];
  result: unknown;
}

/** Where the connection gets a server from. */
export interface Launcher {
  /** Starts a server process; or says, in a sentence, why none was found. */
  launch(): Promise<ChildProcess | { missing: string }>;
  /** What this window announces and sets. `editor`: what it answers of `magy/editor/*`. */
  announce(editor: Record<string, boolean>): Promise<Announcement>;
}

type Handler<P> = (params: P) => void;
/** Makes an edit of open documents by `next`, or says why not. */
type Applying = (
  params: ApplyWorkspaceEditParams,
  next: (params: ApplyWorkspaceEditParams) => Promise<ApplyWorkspaceEditResult>,
) => Promise<ApplyWorkspaceEditResult>;
type Answerer<P, R> = (params: P, token: vscode.CancellationToken) => Promise<R>;

/** These answer when their work is done, which may take long. */
const LONG: ReadonlySet<string> = new Set([
  "magy/child/wait",
  "magy/doctor/run",
  "magy/session/compact",
  "magy/session/summarize",
]);

const plainly: Applying = (params, next) => next(params);

/** Milliseconds that a server has to answer `initialize`; it does so before it loads anything. */
const STARTING = 60_000;

/** Milliseconds that a server which was asked to end may take, with the commands that it runs. */
const ENDING = 5_000;

function ended(process: ChildProcess): boolean {
  return process.exitCode !== null || process.signalCode !== null;
}

/** Waits for the end of a process, and kills it when that is late. */
async function gone(process: ChildProcess, patience: number): Promise<void> {
  if (ended(process)) return;
  await new Promise<void>((resolve) => {
    const late = setTimeout(() => process.kill("SIGKILL"), patience);
    process.once("exit", () => {
      clearTimeout(late);
      resolve();
    });
  });
}

/** The library's client, which only logs its errors: this extension says what a person needs to know. */
function quiet(
  { LanguageClient: Base }: typeof Library,
  server: () => Promise<ChildProcess>,
  options: LanguageClientOptions,
): LanguageClient {
  class Quiet extends Base {
    override error(message: string, data?: unknown): void {
      super.error(message, data, false);
    }
  }
  return new Quiet("magy", "Magy", server, options);
}

/** The connection to the one server of this window. Handlers outlive restarts. */
export class Connection implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private library: typeof Library | undefined;
  private process: ChildProcess | undefined;
  private starting: Promise<void> | undefined;
  private stopping = false;
  private now: ConnectionState = "stopped";
  private ending = "";
  private applying: Applying = plainly;
  private readonly handlers = new Map<string, Set<Handler<never>>>();
  private readonly answerers = new Map<string, Answerer<never, unknown>>();
  private readonly changed = new vscode.EventEmitter<ConnectionState>();
  private readonly ran = new vscode.EventEmitter<RanCommand>();

  readonly onDidChangeState = this.changed.event;
  /** Fires when a command of the server's has run, by whatever way: code action, lens, key. */
  readonly onDidRunCommand = this.ran.event;

  constructor(
    private readonly launcher: Launcher,
    private readonly log: vscode.LogOutputChannel,
    private readonly patience: () => number,
  ) {}

  get state(): ConnectionState {
    return this.now;
  }

  /** Whether there is a server: what it told of sessions holds still. */
  get alive(): boolean {
    return this.now === "running" || this.now === "silent";
  }

  /** Why it is dead or missing, as a sentence; else empty. */
  get problem(): string {
    return this.now === "dead" || this.now === "missing" ? this.ending : "";
  }

  /** Of the running server. */
  get about(): ServerAbout | undefined {
    const offered: unknown = this.client?.initializeResult?.capabilities.experimental;
    return (offered as { magy?: ServerAbout } | undefined)?.magy;
  }

  /** Starts the server unless it runs. Throws ServerGone with a sentence that says why it cannot. */
  async start(): Promise<void> {
    if (this.alive) return;
    this.starting ??= this.begin().finally(() => (this.starting = undefined));
    await this.starting;
  }

  /** Asks the server, which is started if needed. Throws MagyError, ServerGone, CancellationError. */
  async request<M extends keyof Requests>(
    method: M,
    params: Requests[M]["params"],
    token?: vscode.CancellationToken,
  ): Promise<Requests[M]["result"]> {
    await this.start();
    const client = this.client;
    if (!client) throw new ServerGone(this.ending);
    const watch = LONG.has(method) ? undefined : this.watch(client, method);
    try {
      // A token that is undefined would count as a second parameter.
      const rest = token ? [token] : [];
      return await client.sendRequest<Requests[M]["result"]>(method, params, ...rest);
    } catch (error) {
      throw this.said(error, client, token);
    } finally {
      if (watch) this.answered(client, watch);
    }
  }

  /** Hears a notification of the server's. */
  on<N extends keyof Notifications>(name: N, handler: Handler<Notifications[N]>): vscode.Disposable {
    const all = this.handlers.get(name) ?? new Set();
    this.handlers.set(name, all.add(handler));
    return new vscode.Disposable(() => all.delete(handler));
  }

  /** Answers a request of the server's, which must be announced (see `Announcement`). */
  answer<M extends keyof EditorRequests>(
    method: M,
    answerer: Answerer<EditorRequests[M]["params"], EditorRequests[M]["result"]>,
  ): vscode.Disposable {
    this.answerers.set(method, answerer);
    return new vscode.Disposable(() => this.answerers.delete(method));
  }

  /** Decides about the server's edits of open documents. */
  apply(applying: Applying): vscode.Disposable {
    this.applying = applying;
    return new vscode.Disposable(() => (this.applying = plainly));
  }

  /** Ends the server, even one that hangs, and starts it again. Sessions go on where they were. */
  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  /** Ends the server. Sessions stay in its log. */
  async stop(): Promise<void> {
    this.stopping = true;
    try {
      if (this.starting) {
        this.process?.kill("SIGKILL");
        await this.starting.catch(() => undefined);
      }
      const { client, process } = this;
      this.client = undefined;
      this.process = undefined;
      const hangs = this.now === "silent";
      if (client) await this.end(client);
      if (process) await gone(process, hangs ? 0 : ENDING);
    } finally {
      this.stopping = false;
    }
    this.become("stopped");
  }

  private async end(client: LanguageClient): Promise<void> {
    if (client.isRunning()) {
      await client.stop(this.now === "silent" ? 500 : 5_000).catch((error: unknown) => {
        this.log.warn(`The server did not end by itself: ${String(error)}`);
      });
    }
    await client.dispose().catch(() => undefined);
  }

  dispose(): void {
    void this.stop();
    this.changed.dispose();
    this.ran.dispose();
  }

  private become(state: ConnectionState): void {
    if (state === this.now) return;
    this.now = state;
    this.changed.fire(state);
  }

  private async begin(): Promise<void> {
    this.become("starting");
    let process: ChildProcess | undefined;
    try {
      const announcement = await this.launcher.announce(this.offers());
      const launched = await this.launcher.launch();
      if ("missing" in launched) {
        this.ending = launched.missing;
        this.become("missing");
        throw new ServerGone(this.ending);
      }
      process = launched;
      this.process = launched;
      this.follow(launched);
      const client = await this.make(launched, announcement);
      this.client = client;
      this.listen(client);
      // Of a process that has ended, the library would wait for an answer.
      if (ended(launched)) throw new ServerGone("It ended at once.");
      await client.start();
    } catch (error) {
      if (error instanceof ServerGone && this.now === "missing") throw error;
      const why = error instanceof Error ? error.message : String(error);
      this.died(process, `Magy's server could not start: ${why}`);
      throw new ServerGone(this.ending);
    }
    const { version = "of unknown version" } = this.about ?? {};
    this.log.info(`Magy ${version} runs as process ${process.pid}.`);
    this.become("running");
  }

  private async make(process: ChildProcess, announcement: Announcement): Promise<LanguageClient> {
    this.library ??= await import("vscode-languageclient/node");
    const options = this.options(this.library, announcement);
    return quiet(this.library, () => Promise.resolve(process), options);
  }

  /** Notices that the process ends, or that it does not begin to answer. */
  private follow(process: ChildProcess): void {
    const late = setTimeout(() => {
      if (this.now !== "starting") return;
      this.died(process, `Magy's server has said nothing for ${STARTING / 1000} s.`);
      process.kill("SIGKILL");
    }, STARTING);
    process.once("exit", (code, signal) => {
      clearTimeout(late);
      const how = signal ?? `status ${code}`;
      this.log.info(`The server, process ${process.pid}, ended (${how}).`);
      const when = this.now === "starting" ? "as it started" : "unexpectedly";
      this.died(process, `Magy's server ended ${when} (${how}).`);
    });
  }

  /** What the parts of this extension answer of `magy/editor/*`. */
  private offers(): Record<string, boolean> {
    const names = EDITOR_REQUESTS.filter((name) => this.answerers.has(name));
    return Object.fromEntries(names.map((name) => [name.replace("magy/editor/", ""), true]));
  }

  private options(library: typeof Library, announcement: Announcement): LanguageClientOptions {
    return {
      documentSelector: [{ scheme: "file" }],
      initializationOptions: { magy: announcement },
      outputChannel: this.log,
      revealOutputChannelOn: library.RevealOutputChannelOn.Never,
      initializationFailedHandler: () => false,
      connectionOptions: { maxRestartCount: 0 },
      errorHandler: {
        error: () => ({ action: library.ErrorAction.Continue, handled: true }),
        closed: () => ({ action: library.CloseAction.DoNotRestart, handled: true }),
      },
      middleware: {
        workspace: {
          handleApplyEdit: (params, next) => {
            const { token } = new vscode.CancellationTokenSource();
            return this.applying(params, async (given) => {
              return (await next(given, token)) as ApplyWorkspaceEditResult;
            });
          },
        },
        executeCommand: async (command, args: unknown[], next) => {
          const result: unknown = await next(command, args);
          this.ran.fire({ command, arguments: args, result });
          return result;
        },
      },
    };
  }

  private listen(client: LanguageClient): void {
    for (const name of NOTIFICATIONS) {
      client.onNotification(name, (params: Notifications[typeof name]) => {
        for (const handler of this.handlers.get(name) ?? []) {
          try {
            handler(params as never);
          } catch (error) {
            this.log.error(`${name} was not understood: ${String(error)}`); // the others may understand it
          }
        }
      });
    }
    for (const name of EDITOR_REQUESTS) {
      client.onRequest(name, async (params: never, token: vscode.CancellationToken) => {
        const answerer = this.answerers.get(name);
        if (answerer) return answerer(params, token);
        throw new Error(`VS Code does not offer ${name}`);
      });
    }
  }

  private died(process: ChildProcess | undefined, why: string): void {
    if (this.stopping || this.now === "dead") return;
    if (this.process !== process && this.now !== "starting") return;
    const { client } = this;
    this.client = undefined;
    this.process = undefined;
    this.ending = why;
    this.become("dead");
    client?.dispose().catch(() => undefined);
  }

  /** Notices when the server does not answer for long. */
  private watch(client: LanguageClient, method: string): NodeJS.Timeout {
    const seconds = this.patience();
    return setTimeout(() => {
      if (this.client !== client) return;
      this.log.warn(`The server has not answered ${method} for ${seconds} s.`);
      if (this.now === "running") this.become("silent");
    }, seconds * 1000);
  }

  private answered(client: LanguageClient, watch: NodeJS.Timeout): void {
    clearTimeout(watch);
    if (this.client === client && this.now === "silent") this.become("running");
  }

  private said(error: unknown, client: LanguageClient, token?: vscode.CancellationToken): Error {
    if (token?.isCancellationRequested) return new vscode.CancellationError();
    const { ErrorCodes, ResponseError } = this.library ?? {};
    const answer = ResponseError && error instanceof ResponseError ? error : undefined;
    // What the library says of requests that were open, or came, when the server was gone.
    const lost = [ErrorCodes?.PendingResponseRejected, ErrorCodes?.ConnectionInactive];
    if (this.client !== client || (answer && lost.some((code) => code === answer.code))) {
      return new ServerGone(this.problem || "Magy's server was stopped before it answered.");
    }
    if (answer) {
      const data = answer.data as { reason?: string } | undefined;
      return new MagyError(answer.message, answer.code, data?.reason);
    }
    return error instanceof Error ? error : new Error(String(error));
  }
}
