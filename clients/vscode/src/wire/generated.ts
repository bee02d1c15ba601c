// Generated from magy_server/api/wire by `make docs`; edit that instead.

/** US dollars; nothing of it is there before the first request. */
export interface Cost {
  amount?: number;
  currency?: string;
  /** Requests whose price is not known */
  unpriced?: number;
}

export interface ActionRun {
  /** Default: the session that this connection used last in that project, else a new one */
  sessionId?: string | null;
  /** The prompt's id, chosen by the client and unique in the project; repeating a request has no effect. Without `sessionId` Magy looks for it in the sessions that this connection used, and in the project's ten latest sessions of the last hour */
  messageId?: string | null;
  /** What the prompt does to a running turn */
  delivery?: "steer" | "queue" | "interrupt";
  /** Its id: `explain`, or `AGENT.ID` for an agent's own action */
  action: string;
  uri: string;
  range: Range;
  diagnostics?: Diagnostic[];
  /** Text that the person adds */
  text?: string;
}

/** An agent that this process runs, or held lately. */
export interface AgentHealth {
  sessionId: string;
  state: string;
  /** Prompts and messages that wait */
  queueDepth: number;
  /** In a row */
  errors: number;
  /** Share of failures among its latest outcomes, 0 to 1 */
  errorRate: number;
  restarts: number;
  /** Approximate bytes of memory that it uses in this process */
  memory: number;
  /** ISO 8601, UTC */
  lastProgress: string | null;
}

export interface AgentHealthResult {
  agents: AgentHealth[];
}

export interface AgentInfo {
  name: string;
  description: string;
  /** primary: people talk to it; subagent: for children; all: both */
  mode: string;
  /** null: the configured one */
  model: string | null;
}

/** The whole text of a reply. It replaces the chunks that had the same `messageId`. */
export interface AgentMessage {
  sessionUpdate: "agent_message";
  _meta?: MetaStamp | null;
  messageId: string;
  content: TextBlock[];
}

/** A delta: more text of a reply, to be appended. */
export interface AgentMessageChunk {
  sessionUpdate: "agent_message_chunk";
  _meta?: MetaStamp | null;
  messageId: string;
  content: TextBlock;
}

/** The same for what the model thought, where its provider shows that. */
export interface AgentThought {
  sessionUpdate: "agent_thought";
  _meta?: MetaStamp | null;
  messageId: string;
  content: TextBlock[];
}

/** A delta: more of what the model thinks, to be appended. */
export interface AgentThoughtChunk {
  sessionUpdate: "agent_thought_chunk";
  _meta?: MetaStamp | null;
  messageId: string;
  content: TextBlock;
}

export interface AgentsParams {
  /** The directory whose project's agents to list; null: the first folder */
  cwd?: string | null;
}

export interface AgentsResult {
  agents: AgentInfo[];
}

export interface Announcement {
  client?: ClientInfo;
  capabilities?: Capabilities;
  /** Settings of this connection, in the shape of `magy.toml`. They override those in files; the environment overrides them */
  settings?: Record<string, unknown>;
  /** The person has not trusted these folders in the editor. No project is trusted on this connection then, whatever was said before */
  restricted?: boolean;
  /** Keys that the editor keeps for the person, by the name of the provider. Each counts where neither the environment nor the configuration has one; Magy keeps them in its memory alone: it writes them nowhere, and no command sees them */
  keys?: Record<string, string>;
}

export interface CallStamp {
  seq?: number | null;
  at?: number | null;
  decision?: Judgement | null;
  /** At the end: how it ended, more exactly than `status` */
  status?: "completed" | "failed" | "denied" | "cancelled" | "unknown" | "not_run" | null;
  /** At the end: seconds */
  duration?: number | null;
  /** The graph of tasks that the call runs, as it is now */
  graph?: Graph | null;
  /** The deliberation that the call is, as it is now */
  deliberation?: Deliberation | null;
}

export interface CancelParams {
  sessionId: string;
  /** null: whatever runs */
  turnId?: string | null;
}

export interface CancelResult {
  /** false: no such turn was running */
  cancelled: boolean;
}

export interface CancelRun {
  /** Default: the running session that was used last */
  sessionId?: string | null;
}

export interface Cancelled {
  cancelled: boolean;
  sessionId: string | null;
}

export interface Capabilities {
  /** The client shows questions itself and answers them with `magy/interaction/respond`. It then gets `magy/interaction/changed` and `magy/session/listChanged`, and no `window/showMessageRequest` for questions */
  interactions?: boolean;
  /** The client shows hunks itself. It then gets `magy/review/changed`, and no code lenses */
  review?: boolean;
  /** Code lenses above hunks; left out: unless `review` is announced */
  lenses?: boolean | null;
  /** How the result of a command such as `magy.prompt` is shown: a document, a message, or not at all; left out: `none` with `interactions`, else `document` */
  answers?: "document" | "message" | "none" | null;
  editor?: EditorOffers;
}

/** A `ConfigOption` without the values to choose from. */
export interface ChangedOption {
  configId: string;
  name: string;
  currentValue: string;
}

export interface ChangedPath {
  operation: "add" | "modify" | "delete" | "move";
  /** Absolute */
  path: string;
  /** Of a move; absolute */
  oldPath?: string | null;
}

export interface CheckpointFile {
  path: string;
  added: number;
  removed: number;
  /** applied | undone | partly */
  state: string;
}

/** A turn as a point to go back to: its beginning. */
export interface CheckpointInfo {
  turnId: string;
  /** The first words of its prompt */
  prompt: string;
  /** ISO 8601, UTC */
  at: string;
  files: CheckpointFile[];
  /** State of its files: applied | undone | partly */
  state: string;
  /** Whether the conversation can go back to here, too */
  conversation: boolean;
  /** Why the conversation cannot */
  why: string;
  /** The restore that undid it; redo: `undoes` */
  restoreId: string;
  /** Its files were changed by the session that this one was forked from, which alone can undo them */
  inherited: boolean;
}

export interface CheckpointListParams {
  sessionId: string;
  limit?: number;
  /** A turn: list only those before it */
  before?: string | null;
}

export interface CheckpointListResult {
  /** Oldest first */
  checkpoints: CheckpointInfo[];
  /** The newest restore that can be taken back: pass it as `undoes` */
  redo: string | null;
}

/** `turnId` goes back to where that turn began, `undoes` takes such a restore back; without either the newest turn is undone that is not. */
export interface CheckpointParams {
  sessionId: string;
  turnId?: string | null;
  undoes?: string | null;
  files?: boolean;
  conversation?: boolean;
}

export interface CheckpointPreview {
  turnId: string;
  undoes: string;
  /** The turns that are undone or redone, oldest first */
  turns: string[];
  files: RestoredFile[];
  conversation: boolean;
  /** The prompt of the turn that is undone */
  prompt: string;
  /** Why the conversation stays */
  why: string;
}

export interface CheckpointRestoreParams {
  sessionId: string;
  turnId?: string | null;
  undoes?: string | null;
  files?: boolean;
  conversation?: boolean;
  /** Made by the client; sending the same key again has no effect */
  requestKey: string;
}

export interface CheckpointRestored {
  turnId: string;
  undoes: string;
  /** The turns that are undone or redone, oldest first */
  turns: string[];
  files: RestoredFile[];
  conversation: boolean;
  /** The prompt of the turn that is undone */
  prompt: string;
  /** For `undoes` */
  restoreId: string;
}

/** A child at a glance. */
export interface Child {
  sessionId: string;
  parentSessionId: string;
  name: string;
  agent: string;
  model: string;
  /** queued: it waits to start; running; waiting: for a person's answer; completed | failed | cancelled: how its latest turn ended; closed: it accepts nothing more */
  state: "queued" | "running" | "waiting" | "completed" | "failed" | "closed" | "cancelled";
  /** 1: the child of a root */
  depth: number;
  turns: number;
  /** Prompts and messages that wait */
  waiting: number;
  /** Open questions, its own and those of all below it */
  questions: number;
  usage: Record<string, number>;
  cost: Cost;
  /** Including all below it */
  treeUsage: Record<string, number>;
  treeCost: Cost;
  /** The beginning of its latest result, or of its task */
  said: string;
  /** For its latest turn */
  stopReason: string | null;
  createdAt: string;
  updatedAt: string;
}

/** Caps of the child's turns; the configured ones hold beside them, the lower of each two. 0 or left out: only those. */
export interface ChildCaps {
  requests?: number;
  tokens?: number;
  /** US dollars */
  cost?: number;
  seconds?: number;
  /** For one run, with all that the child's own children do for it */
  runTokens?: number;
  runCost?: number;
}

export interface ChildChanged {
  parentSessionId: string;
  child: Child;
  /** It was deleted; `child`, closed, is its last state */
  deleted: boolean;
}

export interface ChildCloseParams {
  sessionId: string;
  /** finish: it still does what runs and waits there; cancel: it does not */
  mode?: "finish" | "cancel";
  /** For people */
  reason?: string;
  /** Including all below it */
  recursive?: boolean;
}

export interface ChildClosed {
  previousState: "queued" | "running" | "waiting" | "completed" | "failed" | "closed" | "cancelled";
  /** Session ids, without those that were closed before */
  closed: string[];
}

export interface ChildLimits {
  maxDepth: number;
  maxChildren: number;
  maxTotal: number;
  maxConcurrent: number;
  maxQueue: number;
  /** Working children in this process */
  working: number;
  /** How many of them wait for a slot */
  queued: number;
  /** How values out of range were changed */
  clamped: string[];
}

/** Holds at once and until the process ends. No field: only asks. What is out of range is clamped, and said. */
export interface ChildLimitsParams {
  /** 1 to 3 */
  maxDepth?: number | null;
  /** Open children of one session: 1 to 4 */
  maxChildren?: number | null;
  /** Working children in the process: 1 to 256 */
  maxTotal?: number | null;
  /** Turns that run at once: 1 to 10 */
  maxConcurrent?: number | null;
  /** Children that wait for a turn: 1 to 200 */
  maxQueue?: number | null;
}

export interface ChildListParams {
  /** null: the children of all sessions */
  parentSessionId?: string | null;
  recursive?: boolean;
  includeClosed?: boolean;
  /** `nextCursor` of the page before */
  cursor?: string | null;
  limit?: number;
}

export interface ChildListResult {
  children: Child[];
  /** null: this is the last page */
  nextCursor: string | null;
}

/** How a turn ended, and what it took. */
export interface ChildReport {
  turnId: string;
  status: string;
  stopReason: string;
  requests: number;
  usage: Record<string, number>;
  cost: Cost;
  seconds: number;
}

export interface ChildResult {
  child: Child;
  /** Its latest result */
  text: string;
  report: ChildReport | null;
  /** Where the result stands in the parent's log; 0: there is none */
  seq: number;
}

/** One of `prompt`, `data` and `signal`. `sessionId` may be any session, not only a child. */
export interface ChildSendParams {
  sessionId: string;
  /** Chosen by the client for this one message of the session: repeating it has no effect, and another message under the same key is refused. `messageId` of `magy/session/prompt` is such a key, too */
  requestKey: string;
  prompt?: (TextBlock | LinkBlock | ResourceBlock | ImageBlockInput)[] | null;
  /** For programs: no model reads it */
  data?: Record<string, unknown> | null;
  /** ping: the child answers with a heartbeat; cancel: stops its running turn; shutdown: closes it */
  signal?: "ping" | "cancel" | "shutdown" | null;
  /** What the prompt does to a running turn */
  delivery?: "queue" | "steer" | "interrupt";
}

export interface ChildSent {
  messageId: string;
  outcome: "started" | "steered" | "queued" | "known" | "delivered";
}

export interface ChildSpawnParams {
  parentSessionId: string;
  /** Chosen by the client: the last part of the child's id. Repeating a request gives the same child; another task under the same key is refused. Keys like `12.0` are reserved for the children of calls */
  requestKey: string;
  /** "": the parent's */
  agent?: string;
  /** 10 MB in all at most */
  prompt: (TextBlock | LinkBlock | ResourceBlock | ImageBlockInput)[];
  /** A name for the task, for people */
  name?: string;
  /** How much of the parent's conversation it sees: {turns: n}, the latest n */
  context?: "none" | "all" | LatestTurns;
  /** `provider/model`; "": the parent's */
  model?: string;
  /** {key: action} or {key: {pattern: action}}. They can only restrict what the child's agent and its parents may do; a key that no tool has, and a key that only allows, is refused */
  permissions?: Record<string, "allow" | "ask" | "deny" | Record<string, "allow" | "ask" | "deny">>;
  limits?: ChildCaps;
  /** Absolute path in the parent's workspace; null: the parent's */
  cwd?: string | null;
  /** It works on a git branch of its own, in a worktree; what becomes of that, its agent's file says */
  worktree?: boolean;
  /** The only plugin of which it has tools, skills and words; "": as its agent */
  plugin?: string;
}

export interface ChildSpawned {
  child: Child;
  /** It existed already: nothing was done */
  known: boolean;
}

export interface ChildStamp {
  seq?: number | null;
  at?: number | null;
  /** Only of a child */
  parentSessionId?: string | null;
  /** Only of a child: the call that spawned it; null: a person did */
  toolCallId?: string | null;
}

/** For the children of `parentSessionId`, or those named; both: those, which must be its. */
export interface ChildWaitParams {
  parentSessionId?: string | null;
  sessionIds?: string[] | null;
  until?: "any" | "all";
  /** `seq` of the last answer: only newer results count. A child that is idle without a result in the parent's log (it never started, or is further below) counts as done. Left out: every idle child is done */
  afterSeq?: number | null;
  /** Default: spawn.wait_timeout */
  timeoutMs?: number | null;
}

export interface ChildWaited {
  results: ChildResult[];
  /** Nothing was cancelled; ask again with `seq` */
  timedOut: boolean;
  /** Pass it as `afterSeq` next time, so that nothing is missed */
  seq: number;
}

export interface ClientInfo {
  /** Names the client in the log, such as who answered a question */
  name?: string;
}

export interface CloseRun {
  sessionId: string;
  mode?: "finish" | "cancel";
}

export interface ClosedQuestion {
  interactionId: string;
  outcome: "allowed" | "refused";
  reason: string;
  scope: "once" | "session" | "project";
  /** `client.name` of the client that answered; `nobody` where nobody could */
  by: string;
}

/** The session, a child, was closed: it accepts nothing more. */
export interface ClosedUpdate {
  sessionUpdate: "_magy_closed";
  _meta?: MetaStamp | null;
  mode: "finish" | "cancel";
  reason: string;
}

export interface CompactParams {
  sessionId: string;
  /** What the summary must keep */
  focus?: string;
}

export interface CompleteParams {
  /** The directory whose project's files to offer; null: the first project */
  cwd?: string | null;
  /** The session whose project to use; overrides `cwd` */
  sessionId?: string | null;
  /** The prompt up to the cursor */
  before: string;
}

export interface CompleteResult {
  /** The end of `before` that an item replaces; "": nothing */
  prefix: string;
  /** The best first, 50 at most */
  items: Completion[];
  /** There are more, or a later request replaced this one */
  incomplete: boolean;
}

export interface Completion {
  label: string;
  /** The text that replaces `prefix` */
  text: string;
  /** `command`: the client itself carries it out */
  kind: "file" | "directory" | "symbol" | "skill" | "action" | "agent" | "command";
  detail: string;
}

export interface CompletionStatus {
  /** `completion.enabled` of the project */
  enabled: boolean;
  /** `provider/model` that is asked; "" if none is */
  model: string;
  /** Why the model is not asked at the moment; "" if it is */
  paused: string;
  /** Requests to models today, in all projects together */
  requests: number;
  /** What they took, cached tokens included */
  tokens: number;
  /** US dollars that they cost, counted where prices are known */
  cost: number;
  /** How many of them are not counted in `tokens`, as their end was not heard: cancelled while one types, say. `cost` has an estimate of them */
  estimated: number;
  /** The limit of `cost`, in US dollars; 0: none */
  dayCost: number;
}

export interface CompletionStatusParams {
  /** The directory whose project's settings to report; null: the first project */
  cwd?: string | null;
}

export interface ConfigOption {
  configId: string;
  /** For people */
  name: string;
  currentValue: string;
  /** The values to choose from */
  options: string[];
}

/** These options changed; the others stay. */
export interface ConfigOptionUpdate {
  sessionUpdate: "config_option_update";
  _meta?: MetaOptionStamp | null;
  configOptions: ChangedOption[];
}

export interface ConfigParams {
  sessionId: string;
  configId: "agent" | "model" | "review" | "bypass" | "title";
  value: string;
}

export interface ConfigResult {
  configOptions: ConfigOption[];
}

export interface ContextItem {
  kind: "selection" | "definition" | "point" | "diagnostics" | "visible" | "open";
  /** For people: "app.py:10-24", "3 diagnostics" */
  label: string;
  /** Whether it is sent unless the person removes it */
  default: boolean;
  /** Content for `prompt` of magy/session/prompt, unchanged */
  block: TextBlock | LinkBlock | ResourceBlock | ImageBlock;
}

export interface ContextParams {
  uri: string;
  position: Position;
  selection?: Range | null;
  /** The part of the text on the screen */
  visible?: Range | null;
  diagnostics?: Diagnostic[];
  /** Other open files, the latest first */
  openUris?: string[];
}

export interface ContextResult {
  items: ContextItem[];
}

export interface DeleteResult {
  deleted: boolean;
}

/** How a deliberation is by now, for people. */
export interface Deliberation {
  deliberationId: string;
  /** Its first 500 characters */
  question: string;
  mode: string;
  state: "INIT" | "STAGE1_SPAWNING" | "STAGE1_COLLECTING" | "VALIDATING" | "STAGE2_DIGEST" | "STAGE2_COLLECTING" | "TALLYING" | "CRISIS" | "REPORTING" | "DONE";
  /** How many of the three nodes have voted */
  voted: number;
  /** Where it stands, or what the ruling is, on one line */
  line: string;
  nodes: NodeShown[];
  /** Between each two that have voted */
  tensions: TensionShown[];
  ruling: RulingShown | null;
  /** Of attempts that have ended */
  tokens: number;
  cost: Record<string, unknown>;
  /** The same in words; "": nothing yet */
  spent: string;
  /** All of it as lines of text */
  rows: string[];
  /** All of it drawn, in 73 columns */
  box: string[];
}

/** As the Language Server Protocol has it, and the file it belongs to. */
export interface Diagnostic {
  /** In `magy/context/get`: the document of the request */
  uri?: string | null;
  range: Range;
  /** 1 error, 2 warning, 3 information, 4 hint; null: error */
  severity?: number | null;
  message: string;
  source?: string | null;
  code?: string | number | null;
}

export interface DiagnosticsAnswer {
  /** There are more */
  truncated?: boolean;
  diagnostics: Diagnostic[];
}

export interface DiagnosticsParams {
  /** One file; null: all open files */
  uri: string | null;
}

export interface Diff {
  type: "diff";
  changes: ChangedPath[];
  patch: Patch;
}

export interface DoctorCheck {
  /** The topic, such as `models` */
  name: string;
  status: "ok" | "warn" | "fail" | "info";
  summary: string;
  detail: string;
  /** What to do; empty if nothing is wrong */
  fix: string;
}

export interface DoctorParams {
  /** The project to examine */
  cwd?: string | null;
  /** What the client reports about itself; any shape */
  editor?: Record<string, unknown> | null;
}

export interface DoctorResult {
  checks: DoctorCheck[];
  /** The whole report as text for an issue, without keys and the name of the home directory */
  report: string;
}

export interface DropParams {
  sessionId: string;
  messageIds: string[];
}

export interface EditApplyParams {
  /** Absolute; null: the first workspace folder */
  cwd?: string | null;
  /** The file, where the edit names none */
  uri?: string | null;
  /** str_replace | aider | cline | roo | unified | v4a | whole; null: found out */
  format?: string | null;
  /** The edit as text */
  text?: string | null;
  /** The edit as [objects](#edits-as-objects) */
  edits?: (Record<string, unknown>)[] | null;
  /** The text that the edit was made for, if the file may have changed since. Only for an edit of one file */
  seen?: string | null;
  /** Title of the step, for the editor's undo */
  label?: string;
  /** Made by the client; sending the same key again has no effect */
  requestKey: string;
}

/** `code`: not_found | ambiguous | conflict | no_change | already_applied | placeholder | parse | unknown_file | exists, or failed for what the file system or the editor refuses. */
export interface EditFailure {
  path: string;
  hunk: number;
  code: string;
  message: string;
  /** Those it speaks of, from 1 */
  lines: number[];
}

/** How a hunk was found, where that was not exact. */
export interface EditNote {
  hunk: number;
  tier: string;
  note: string;
}

/** An edit in any format of the edit engine, against the live texts. Exactly one of `text` and `edits` holds it. Paths in it are relative to `cwd`. */
export interface EditParams {
  /** Absolute; null: the first workspace folder */
  cwd?: string | null;
  /** The file, where the edit names none */
  uri?: string | null;
  /** str_replace | aider | cline | roo | unified | v4a | whole; null: found out */
  format?: string | null;
  /** The edit as text */
  text?: string | null;
  /** The edit as [objects](#edits-as-objects) */
  edits?: (Record<string, unknown>)[] | null;
  /** The text that the edit was made for, if the file may have changed since. Only for an edit of one file */
  seen?: string | null;
}

/** All or nothing: with a failure, no file was changed, and `files` is what would fit. What could not be brought back after a failure is named in `message`. */
export interface EditResult {
  applied: boolean;
  files: EditedFile[];
  failures: EditFailure[];
  /** A message for a person, if the edit was made differently than asked */
  message: string;
}

export interface EditedFile {
  path: string;
  uri: string;
  /** update | create | write | delete */
  op: string;
  /** Its path before it was renamed */
  fromUri: string | null;
  added: number;
  removed: number;
  diff: string;
  notes: EditNote[];
}

/** What Magy may ask the editor, each by the request `magy/editor/NAME`. */
export interface EditorOffers {
  /** Save a document. Without it, edits of open files stay unsaved */
  save?: boolean;
  diagnostics?: boolean;
  definition?: boolean;
  references?: boolean;
  symbols?: boolean;
  /** The language of code that the editor can evaluate */
  eval?: "elisp" | null;
}

export interface Empty {

}

export interface EvalAnswer {
  /** Printed */
  value?: string;
  /** What the code wrote to the echo area or standard output */
  output?: string;
  error?: string | null;
}

export interface EvalParams {
  /** Code in the language that the client announced: elisp */
  code: string;
  /** Milliseconds after which the client gives up and answers */
  timeoutMs: number;
}

/** With `after`, the first entries after that one; else the last ones, before `before`. */
export interface EventsParams {
  sessionId: string;
  /** A `seq` */
  before?: number | null;
  /** A `seq` */
  after?: number | null;
  limit?: number;
}

export interface EventsResult {
  /** The oldest first */
  events: Update[];
  /** Seq of the last entry of the log */
  headSeq: number;
  /** There are later ones in the range that was asked for; without `after`: earlier */
  more: boolean;
}

export interface Failure {
  code: number;
  message: string;
}

/** How a question felt, and what was learned. The question itself is not kept. */
export interface FeelingShown {
  id: string;
  date: string;
  /** The same for the same question */
  topicHash: string;
  /** From -1, how bad it felt, to 1, how good */
  valence: number;
  emotion: string;
  lesson: string;
  /** How much it counts by now, from 0 to 1 */
  strength: number;
  keptUntil: string;
}

export interface FinalNewline {
  base: boolean;
  current: boolean;
}

export interface ForkParams {
  sessionId: string;
  /** Repeating a request has no effect; the id of another session is refused (`key_used`) */
  newSessionId: string;
  /** The last entry that the fork keeps; null: all */
  seq?: number | null;
}

export interface Form {
  /** The MCP server that asks */
  server: string;
  message: string;
  fields: FormField[];
  /** An address that the person is to open, if they want to; no client opens it */
  url: string;
}

export interface FormChoice {
  value: string;
  /** What a person reads instead; empty: the value */
  name: string;
}

export interface FormField {
  name: string;
  /** Its name and its title, to be shown */
  label: string;
  /** What it takes, in words: `a whole number, 1 to 10` */
  hint: string;
  type: "string" | "number" | "integer" | "boolean";
  title: string;
  about: string;
  required: boolean;
  /** What to begin with */
  default: boolean | number | string | string[] | null;
  /** If any: its value is one of these */
  choices: FormChoice[];
  /** Its value is a list of some of the choices */
  many: boolean;
  /** The least number, characters of a text, or choices */
  low: number | null;
  high: number | null;
  format: "" | "email" | "uri" | "date" | "date-time";
}

/** Where to begin: after the entry `seq`, which the client has, or else with the last `tail` turns. */
export interface From {
  seq?: number | null;
  tail?: number | null;
}

export interface GrantInfo {
  grantId: string;
  key: string;
  pattern: string;
  /** project | session | run: until the person prompts again */
  scope: string;
}

export interface Grantable {
  key: string;
  pattern: string;
}

/** Of a session and its project, or of a project alone: give one of the two. */
export interface GrantsParams {
  sessionId?: string | null;
  /** A workspace root */
  root?: string | null;
}

export interface GrantsResult {
  grants: GrantInfo[];
}

export interface Graph {
  graphId: string;
  /** How many tasks are in each state */
  counts: Record<string, number>;
  /** Each after all that it needs. Of many, 200: those at work, failed and cancelled before all others */
  tasks: TaskShown[];
}

export interface GraphRunParams {
  sessionId: string;
  /** Chosen by the client; also the id of the prompt and of its turn. Repeating a request has no effect; another graph under the same key is refused */
  requestKey: string;
  tasks?: GraphTask[];
  /** auto: what suits them; graph: as `needs` says; pipeline: each needs the one before; fan_out: side by side, the last brings together; discussion: as fan_out, but they also answer each other; swarm: the first splits the work, the others are roles, the last brings together */
  shape?: "auto" | "graph" | "pipeline" | "fan_out" | "discussion" | "swarm";
  /** How often each speaks to the others */
  rounds?: number;
  /** Instead of tasks: the id of a graph that was interrupted */
  goOn?: string;
}

export interface GraphRunResult {
  messageId: string;
  outcome: "started" | "steered" | "queued" | "known";
}

export interface GraphShowParams {
  sessionId: string;
  /** null: all that the session has */
  graphId?: string | null;
  /** Tasks of one graph, at most */
  limit?: number;
  /** Also draw each as a Mermaid and a DOT picture */
  pictures?: boolean;
}

export interface GraphShowResult {
  /** The first begun first; the latest 50 */
  graphs: GraphShown[];
}

export interface GraphShown {
  graphId: string;
  /** How many tasks are in each state */
  counts: Record<string, number>;
  /** Each after all that it needs. Of many, 200: those at work, failed and cancelled before all others */
  tasks: TaskShown[];
  /** A call runs it; else `magy/graph/run` can go on with it */
  running: boolean;
  /** A picture, if asked for */
  mermaid: string | null;
  dot: string | null;
}

/** A task: an agent gets the prompt, with the results of those that it needs. */
export interface GraphTask {
  id: string;
  prompt: string;
  agent?: string;
  /** Ids of tasks that must be done before */
  needs?: string[];
  /** `provider/model`; "": the agent's, else the session's */
  model?: string;
  /** How often it is tried again if it fails */
  retries?: number;
  /** The model for those tries */
  instead?: string;
  /** Time for one try; 0: no limit */
  seconds?: number;
  /** Files and directories below the root that it may change; none: as its agent may */
  writes?: string[];
  /** It works in a git branch and work tree of its own, which is merged in the end */
  worktree?: boolean;
  /** The only plugin of which it has tools, skills and words; "": as its agent */
  plugin?: string;
}

export interface HunkComment {
  commentId: string;
  text: string;
}

/** Which agent's call made a change. `command`: it happened while this command ran, which may or may not have done it. */
export interface HunkOrigin {
  sessionId: string;
  agent: string;
  turnId: string;
  toolCallId: string;
  command: string;
}

export interface HunkState {
  hunkId: string;
  /** accepted | rejected | amended | commented | pending | conflict | stale: the hunk no longer exists */
  state: string;
}

export interface ImageBlockInput {
  type: "image";
  mimeType?: string;
  /** Base64 of a PNG, JPEG, GIF or WebP picture, 3.75 MB at most */
  data: string;
  /** Its origin, for people */
  uri?: string | null;
}

export interface ImageBlock {
  type: "image";
  mimeType: string;
  /** Base64 of a PNG, JPEG, GIF or WebP picture, 3.75 MB at most */
  data: string;
  /** Its origin, for people */
  uri: string | null;
}

export interface Interaction {
  interactionId: string;
  sessionId: string;
  /** Set when a child asks */
  parentSessionId: string | null;
  /** The sessions from the root of the tree to the one that asks */
  path: PathStep[];
  /** `form`: the call runs, and its MCP server asks for something: see `form` */
  kind: "permission" | "form";
  toolCallId: string;
  /** One line, to show unchanged: `⏎` is a line end, `<U+202E>` a character that does not show, `⟨300 spaces⟩` or `⟨39 empty lines⟩` much white space, `… (+812 characters, 9 lines) …` what is left out in the middle */
  title: string;
  /** All that would run or change, as the content of a tool call, where the title does not say it: a person can see it before they answer */
  content: (Output | Diff)[];
  /** What is to be filled in; `content` has all of it as text */
  form: Form | null;
  /** The rule that made Magy ask */
  rule: string;
  /** What "session" and "project" would allow: {key, pattern}; none: not offered */
  remember: (Record<string, string>)[];
  /** The same as text, to show unchanged before the person chooses one */
  covers: string[];
  agent: string;
  createdAt: string;
}

export interface InteractionChanged {
  sessionId: string;
  opened: Interaction[];
  resolved: string[];
}

/** A question was asked (`open`) or answered (`resolved`). A question that nobody answered closes when its call ends; then only the call's `tool_call_update` tells, and `magy/interaction/changed`. */
export interface InteractionUpdate {
  sessionUpdate: "_magy_interaction";
  _meta?: MetaStamp | null;
  open?: OpenQuestion | null;
  resolved?: ClosedQuestion | null;
}

export interface InteractionsParams {
  /** The session's own questions and those of all below it */
  sessionId?: string | null;
  /** A workspace root: only the questions of its sessions */
  root?: string | null;
}

export interface InteractionsResult {
  interactions: Interaction[];
}

/** What the rules say of a call. */
export interface Judgement {
  action: "allow" | "ask" | "deny";
  /** The rule that decided, for people */
  rule: string;
  /** Only a person may answer: no remembered answer, no bypass */
  firm: boolean;
  /** Allowed because the change is only proposed */
  proposed: boolean;
}

export interface LastUsed {
  /** Default: the session that was used last */
  sessionId?: string | null;
}

export interface LatestTurns {
  turns: number;
}

/** Lines [start, end), from 0. */
export interface Lines {
  start: number;
  end: number;
}

export interface LinkBlock {
  type: "resource_link";
  uri: string;
  name: string;
}

export interface ListChanged {
  sessionId: string;
}

export interface ListParams {
  /** Sessions of this directory's project come first */
  cwd?: string | null;
  /** List only that project's sessions */
  only?: boolean;
  /** `nextCursor` of the page before */
  cursor?: string | null;
  limit?: number;
}

export interface ListResult {
  sessions: SessionInfo[];
  /** null: this is the last page */
  nextCursor: string | null;
}

export interface Location {
  uri: string;
  range: Range;
  /** The line where it starts */
  text?: string;
}

export interface LocationsAnswer {
  /** There are more */
  truncated?: boolean;
  locations: Location[];
}

export interface MagiAcceptParams {
  sessionId: string;
  /** The `id` of one that `overturns` another */
  rulingId: string;
}

export interface MagiAccepted {
  /** When a person accepted it */
  accepted: string;
  /** That was before this request */
  known: boolean;
}

export interface MagiListParams {
  /** null: of all sessions of the project, those first in which somebody deliberated last */
  sessionId?: string | null;
  /** Where `sessionId` is null: a directory of the project; null: the first folder */
  cwd?: string | null;
  /** How `report` is written */
  form?: "markdown" | "text" | "box";
  /** Of the result before; 0: the newest */
  cursor?: number;
}

export interface MagiListResult {
  /** Of a session the newest first; ten at most */
  rulings: MagiRuling[];
  /** What goes on now, the oldest first */
  running: Deliberation[];
  /** Where older ones are; null: none */
  nextCursor: number | null;
}

export interface MagiLogParams {
  /** A directory of the project; null: the first folder */
  cwd?: string | null;
  /** Takes the entries with these ids out */
  delete?: string[];
  /** Says that a person has read it now */
  reviewed?: boolean;
}

export interface MagiLogResult {
  /** The file */
  path: string;
  /** The newest first */
  entries: FeelingShown[];
  /** When a person has read it last; null: never */
  reviewed: string | null;
  /** Many strong feelings within a week: none is used until a person has read them */
  reviewDue: boolean;
}

/** What a deliberation came to, worked out from the votes in the log. */
export interface MagiRuling {
  /** Of its session, a slash, and of the call that began it */
  id: string;
  /** When it was asked for */
  at: string;
  final: "APPROVED" | "REJECTED" | "DEADLOCK";
  standing: "decisive" | "fragile" | "provisional" | "deadlock" | "aborted";
  /** Percent */
  confidence: number;
  /** A person has to decide before anything is done */
  personNeeded: boolean;
  /** The ruling in whose place it comes once a person accepts it; null: none */
  overturns: string | null;
  /** When a person accepted that; null: nobody has */
  accepted: string | null;
  /** It is, byte for byte, what the log has */
  same: boolean;
  /** The whole report, for people */
  report: string;
  /** The canonical JSON that the report is made of */
  ruling: Record<string, unknown>;
  /** The same as the updates of the call have it */
  shown: Deliberation;
}

export interface Mail {
  id: string;
  /** Session id */
  sender: string;
  /** The sender's agent */
  agent: string;
  /** The name of the sender's task */
  name: string;
  /** Session id */
  to: string;
  delivery: "steer" | "queue";
  /** It opens a turn if none runs */
  wakes: boolean;
  run: string;
  correlation: string | null;
  metadata: Record<string, string>;
  payload: "text" | "data" | "signal";
}

/** A message from another agent arrived; a child's result comes this way. A text waits like a prompt, under `messageId`, and `_magy_queue` names that. Data and signals have a `body`, and no model reads them. */
export interface MailUpdate {
  sessionUpdate: "_magy_mail";
  _meta?: MetaStamp | null;
  mail: Mail;
  messageId?: string | null;
  content?: TextBlock[] | null;
  /** Of a child's result: a `ChildReport` */
  report?: Record<string, unknown> | null;
  body?: Record<string, unknown> | null;
}

/** A server of the Model Context Protocol that is configured for a project. */
export interface McpServer {
  name: string;
  /** What is started, or the address */
  starts: string;
  /** `idle`: nobody has needed it yet, or it was lost */
  condition: "idle" | "connecting" | "ready" | "failed";
  /** The name and version that it gives itself */
  about: string;
  /** Why it failed, in a sentence */
  problem: string;
  tools: McpTool[];
}

export interface McpServersParams {
  /** A file: URI or a path of the project */
  cwd?: string | null;
  /** The name of a server that is started if need be; the answer waits until it has named its tools, or failed */
  connect?: string | null;
}

export interface McpServersResult {
  servers: McpServer[];
  /** What is wrong with the configuration, in sentences */
  problems: string[];
}

export interface McpTool {
  /** As agents call it, and as rules name it */
  name: string;
  description: string;
}

export interface MetaCallStamp {
  magy: CallStamp;
}

export interface MetaChildStamp {
  magy: ChildStamp;
}

export interface MetaOptionStamp {
  magy: OptionStamp;
}

export interface MetaStamp {
  magy: Stamp;
}

export interface MetaStateStamp {
  magy: StateStamp;
}

export interface MetaUsageStamp {
  magy: UsageStamp;
}

export interface ModelsParams {
  /** The directory whose project's providers to ask; null: the first folder */
  cwd?: string | null;
}

export interface ModelsResult {
  providers: ProviderModels[];
}

/** A link to a file, or a picture of a prompt (`magy-blob:HASH`; its bytes are not sent). */
export interface NamedLink {
  type: "resource_link";
  uri: string;
  name: string;
  mimeType?: string | null;
}

export interface NewMade {
  sessionId: string;
}

export interface NewParams {
  /** Chosen by the client, without a `/`; repeating a request has no effect, and another request under the same id is refused (`key_used`) */
  sessionId: string;
  /** Absolute path of a directory. The session belongs to the innermost workspace folder around it, else to this directory; null: to no project */
  cwd?: string | null;
  /** null: `default_agent` of the settings */
  agent?: string | null;
  /** `provider/model`; null: the agent's, or the configured one. One that cannot be asked ends a turn, not this request */
  model?: string | null;
}

export interface NewResult {
  sessionId: string;
  configOptions: ConfigOption[];
}

export interface NewRun {
  /** In the project of this file; else in the first folder */
  uri?: string | null;
  agent?: string | null;
}

/** A column: what one node has said by now. */
export interface NodeShown {
  node: "melchior" | "balthasar" | "casper";
  name: string;
  /** How it thinks: as a scientist, a mother, a woman */
  role: string;
  /** What it is doing, in words; "": it has voted */
  status: string;
  /** The vote that counts; null: there is none yet */
  verdict: "APPROVE" | "CAVEATED" | "REJECT" | "ABSTAIN" | null;
  /** Percent */
  confidence: number | null;
  /** The name of that confidence */
  tier: "High" | "Medium" | "Low" | null;
  /** The first vote in words, where there is a second; "": none */
  before: string;
  /** Two or three sentences */
  summary: string;
  /** What only this node says: risks, what is at stake */
  own: string[];
  flags: string[];
  /** The ruling is against its vote */
  dissents: boolean;
  model: string;
  /** The child of its latest attempt */
  sessionId: string | null;
}

/** A message for the person. It needs no answer. */
export interface Notice {
  sessionUpdate: "notice";
  _meta?: MetaStamp | null;
  severity: "info" | "warning";
  title: string;
  description: string;
}

/** An `Interaction` of the session of this update, in short. */
export interface OpenQuestion {
  interactionId: string;
  kind: "permission";
  toolCallId: string;
  title: string;
  rule: string;
  remember: Grantable[];
  covers: string[];
  content: (Output | Diff)[];
}

export interface OptionStamp {
  seq?: number | null;
  at?: number | null;
  /** With `model`: tokens that the model can hold; 0: unknown */
  window?: number | null;
}

export interface OptionsParams {
  /** As of magy/session/new; null: to no project */
  cwd?: string | null;
}

export interface Output {
  type: "content";
  content: TextBlock;
}

export interface Patch {
  format: "git_patch";
  text: string;
}

export interface PathStep {
  sessionId: string;
  agent: string;
  /** The name of a child's task, or of the session */
  name: string;
}

export interface Place {
  path: string;
}

export interface PlaceParams {
  uri: string;
  position: Position;
  /** The word at that place */
  name: string;
}

export interface Plan {
  type: "items";
  planId: string;
  entries: PlanEntry[];
}

export interface PlanEntry {
  content: string;
  status: "pending" | "in_progress" | "completed" | "cancelled";
  priority: "high" | "medium" | "low";
}

/** The agent's plan, as a whole. */
export interface PlanUpdate {
  sessionUpdate: "plan_update";
  _meta?: MetaStamp | null;
  plan: Plan;
}

export interface Position {
  line: number;
  character: number;
}

/** A delta: what goes on before a reply begins. The next one, or the reply, replaces it. */
export interface ProgressUpdate {
  sessionUpdate: "_magy_progress";
  _meta?: MetaStamp | null;
  text: string;
}

export interface PromptParams {
  sessionId: string;
  /** Chosen by the client; also the turn's id if it opens one */
  messageId: string;
  /** 10 MB in all at most */
  prompt: (TextBlock | LinkBlock | ResourceBlock | ImageBlockInput)[];
  /** What it does to a running turn; see [Turns](#turns) */
  delivery?: "auto" | "steer" | "queue" | "interrupt";
}

export interface PromptResult {
  messageId: string;
  /** See [Turns](#turns) */
  outcome: "started" | "steered" | "queued" | "known";
}

export interface PromptRun {
  /** Default: the session that this connection used last in that project, else a new one */
  sessionId?: string | null;
  /** The prompt's id, chosen by the client and unique in the project; repeating a request has no effect. Without `sessionId` Magy looks for it in the sessions that this connection used, and in the project's ten latest sessions of the last hour */
  messageId?: string | null;
  /** What the prompt does to a running turn */
  delivery?: "steer" | "queue" | "interrupt";
  /** `@spawn AGENT TASK` starts a child (`@spawn AGENT --worktree TASK`: on a git branch of its own); the answer names the child */
  text: string;
  /** With `range`, these lines of the file are sent along */
  uri?: string | null;
  range?: Range | null;
}

export interface Prompted {
  sessionId: string;
  messageId: string;
}

/** The models of a provider that can be used: it is configured, has its key, or runs on this machine. */
export interface ProviderModels {
  provider: string;
  /** As `provider/model`: what the configuration names or Magy knows, then the rest of the provider's own list */
  models: string[];
  /** Why its own list is not there, in a sentence; empty: it is */
  problem: string;
}

/** The queue of waiting prompts changed. Exactly one of `added`, `admitted` and `order` is there. */
export interface Queue {
  sessionUpdate: "_magy_queue";
  _meta?: MetaStamp | null;
  /** This message waits */
  added?: string | null;
  /** With `added` */
  delivery?: "steer" | "queue" | null;
  /** These messages wait no more: they enter the turn that the next `state_update` names, which has the same `seq` */
  admitted?: string[] | null;
  /** These wait first, in this order; the others follow */
  order?: string[] | null;
  /** With `order`: these were removed and will have no turn; of a child's result: the agent has read it already */
  dropped?: string[] | null;
}

export interface QueueResult {
  waiting: Waiting[];
}

export interface Range {
  start: Position;
  end: Position;
}

export interface ReorderParams {
  sessionId: string;
  /** Message ids in the new order; those left out follow in their old order */
  order: string[];
}

export interface ResourceBlock {
  type: "resource";
  resource: TextResource;
}

export interface RespondParams {
  interactionId: string;
  /** `sessionId` of the question */
  sessionId: string;
  outcome: "allow" | "refuse";
  /** See [Questions](#questions) */
  scope?: "once" | "session" | "project";
  /** Reaches the model; of a form, nobody */
  reason?: string;
  /** What was filled in, by field. Texts do for all types: `yes`, `3`, and `a, b` where several are chosen; what does not fit is an error that says why, and the question stays open */
  content?: Record<string, boolean | number | string | string[] | null> | null;
}

export interface RespondResult {
  /** false: it was answered before; see `winner` */
  accepted: boolean;
  /** allowed | refused | closed */
  winner: string | null;
}

export interface RestoredFile {
  path: string;
  uri: string;
  /** create | change | remove | rename | nothing */
  action: string;
  /** Of a rename: the path that goes */
  movedFrom: string;
  /** A unified diff; empty for what is not text */
  diff: string;
  added: number;
  removed: number;
  /** Why it is left alone, as a sentence */
  conflict: string;
}

/** A person went back to an earlier point. With `conversation`, a client marks as undone, or hides, all from the first prompt of turn `turnId` up to this update. With `undoes`, what that restore had marked counts again. */
export interface RestoredUpdate {
  sessionUpdate: "_magy_restored";
  _meta?: MetaStamp | null;
  restoreId: string;
  turnId: string;
  /** The restore that this one takes back */
  undoes: string | null;
  files: boolean;
  conversation: boolean;
  changes: ChangedPath[];
  /** Files that were left alone */
  conflicts: string[];
}

/** Files whose review is not what it was: ask for those that are shown. */
export interface ReviewChanged {
  files: ReviewEntry[];
}

export interface ReviewCommentParams {
  uri: string;
  proposed?: boolean;
  hunkId: string;
  text: string;
  /** Made by the client; sending the same key again has no effect */
  requestKey: string;
}

/** A file under review, in a list. */
export interface ReviewEntry {
  uri: string;
  path: string;
  root: string;
  status: string;
  mode: "applied" | "proposed";
  revision: string;
  /** Hunks that wait for a decision; 0: it has left the review */
  pending: number;
  added: number;
  removed: number;
  sessions: string[];
}

export interface ReviewFile {
  uri: string;
  /** The text before, through workspace/textDocumentContent */
  baseUri: string;
  /** The text proposed, likewise */
  proposedUri: string | null;
  /** created | modified | deleted | renamed */
  status: string;
  oldUri: string | null;
  /** Changes with the review and with the text */
  revision: string;
  /** The document version that ranges refer to; null: the file on disk */
  docVersion: number | null;
  mode: "applied" | "proposed";
  /** The line end that most lines have */
  eol: string;
  finalNewline: FinalNewline;
  added: number;
  removed: number;
  hunks: ReviewHunk[];
}

export interface ReviewGetParams {
  uri: string;
  /** Count what is proposed, not what is applied */
  proposed?: boolean;
}

export interface ReviewGetResult {
  /** null: the file is not under review */
  file: ReviewFile | null;
}

export interface ReviewHunk {
  /** Derived from its content: it stays the same when the hunk moves */
  hunkId: string;
  /** add | change | delete; or of the file as a whole, in words: create | remove | rename | mode | link | binary */
  kind: string;
  /** Its range in the present text; empty where lines were deleted */
  range: Range;
  /** Its range in the text at `baseUri` */
  baseRange: Range;
  /** Line to draw deleted lines at, and the hunk's buttons */
  anchor: number;
  /** Whether they are drawn above that line, or below it */
  above: boolean;
  oldText: string;
  newText: string;
  /** The differing parts within the lines, if they are small */
  words: Word[];
  /** pending | conflict: of a proposal whose lines the person changed since */
  state: string;
  /** The person has changed it */
  amended: boolean;
  origins: HunkOrigin[];
  comments: HunkComment[];
}

export interface ReviewListParams {
  /** Only files with hunks of this session */
  sessionId?: string | null;
  /** Only this project; null: all folders open */
  cwd?: string | null;
  /** `nextCursor` of the page before */
  cursor?: string | null;
  limit?: number;
}

export interface ReviewListResult {
  files: ReviewEntry[];
  /** null: this is the last page */
  nextCursor: string | null;
}

export interface ReviewNavigateParams {
  /** null: start at the first file */
  uri?: string | null;
  line?: number;
  direction?: "next" | "previous";
}

/** All null: nothing is pending. */
export interface ReviewNavigateResult {
  uri: string | null;
  range: Range | null;
  hunkId: string | null;
  proposed: boolean;
}

export interface ReviewOutcome {
  /** For undo; null: nothing was decided */
  decisionId: string | null;
  results: HunkState[];
  /** It was carried out in the text: a reject, an amendment or an undo; of what is proposed, an accept or an amendment */
  applied: boolean;
  /** A message for a person, if something was not done */
  message: string;
  /** Hunks that are left */
  pending: number;
  /** The remaining hunks, up to 500; if there are more, use get */
  file: ReviewFile | null;
}

/** Exactly one of `hunkIds`, `lines` and `all` says what is decided. */
export interface ReviewResolveParams {
  uri: string;
  proposed?: boolean;
  /** The revision that the client saw. With an older one, Magy decides the hunks that are still the same */
  revision?: string | null;
  decision: "accept" | "reject" | "amend";
  hunkIds?: string[] | null;
  /** Lines of the present text: the hunks in them, or only these lines of one hunk. Needs the current `revision` */
  lines?: Lines | null;
  all?: boolean;
  /** The model sees it */
  reason?: string;
  /** For amend: the new lines */
  text?: string | null;
  /** Made by the client; sending the same key again has no effect */
  requestKey: string;
}

export interface ReviewUndoParams {
  decisionId: string;
  /** The decision's file, if known */
  uri?: string | null;
  proposed?: boolean;
  /** Made by the client; sending the same key again has no effect */
  requestKey: string;
}

/** The argument of the command `magy.rewrite`. `range` is that of the text as it is when the command comes. */
export interface RewriteCommand {
  uri: string;
  range: Range;
  instruction: string;
  /** Repeating a request gives the same rewrite; null: a new one */
  requestKey?: string | null;
}

export interface RewriteDraft {
  sessionId: string;
  uri: string;
  /** Where the selection is now; once `applied`, what stands in its place (in review mode `propose`: still the selection) */
  range: Range;
  /** The new text of the selection: the complete lines so far; at the end all of it */
  text: string;
  /** The last three end the rewrite, and nothing follows them; a repeated request with the same key gets the end again */
  state: "streaming" | "applied" | "failed" | "cancelled";
  /** For the person: why it failed, or what they should know */
  message: string;
}

export interface RewriteStartParams {
  /** Made by the client; sending the same key again has no effect */
  requestKey: string;
  uri: string;
  /** The range to rewrite, in the text at the time of the request; an empty range is a place to write at */
  range: Range;
  /** It may mention files, as a prompt does */
  instruction: string;
  /** The directory whose project's settings apply; null: the file's directory */
  cwd?: string | null;
  /** `provider/model`; null: as configured */
  model?: string | null;
}

export interface RewriteStartResult {
  /** The session made for it; cancel it with magy/session/cancel */
  sessionId: string;
  /** Also the turn's id */
  messageId: string;
}

export interface RulingShown {
  final: "APPROVED" | "REJECTED" | "DEADLOCK";
  standing: "decisive" | "fragile" | "provisional" | "deadlock" | "aborted";
  /** Percent: the lowest of those who agree */
  confidence: number;
  tier: "High" | "Medium" | "Low";
  /** A person has to decide before anything is done */
  personNeeded: boolean;
  why: string;
  /** Who disagrees, and why */
  dissent: string[];
  /** What a caveated yes depends on */
  conditions: string[];
  /** Of a deadlock: the ways on */
  options: string[];
  mayFail: string[];
  nextStep: string;
  /** What every form of a ruling has to say */
  safety: string[];
  warnings: string[];
}

export interface SaveParams {
  uri: string;
  /** The version to save; when the person has typed since, do not save */
  version: number;
}

export interface SaveResult {
  saved: boolean;
}

export interface SessionInfo {
  sessionId: string;
  /** Of a child */
  parentSessionId: string | null;
  cwd: string;
  /** Workspace root; null: a global session */
  root: string | null;
  title: string | null;
  /** `rewrite`: of a magy/rewrite/start */
  agent: string;
  /** ISO 8601, UTC */
  updatedAt: string | null;
  /** idle | running | requires_action */
  state: string;
  turns: number;
  headSeq: number;
}

/** The session was opened, or has another title. */
export interface SessionInfoUpdate {
  sessionUpdate: "session_info_update";
  _meta?: MetaChildStamp | null;
  title: string | null;
  /** ISO 8601, UTC */
  updatedAt: string;
}

export interface SessionParams {
  sessionId: string;
}

/** An update from the log (`_meta.magy` has `seq` and `at`), or a delta (it has not). */
export interface SessionUpdate {
  sessionId: string;
  update: AnyUpdate;
}

export interface Shown {
  /** null: the client can show no document */
  uri: string | null;
  /** A file with the transcript, if Magy keeps one */
  path: string | null;
}

export interface SpawnRun {
  /** The task */
  text: string;
  /** Of the parent. Default: the session that this connection used last in that project, else a new one */
  sessionId?: string | null;
  /** Repeating a request gives the same child; null: a new one */
  requestKey?: string | null;
  /** "": the parent's */
  agent?: string;
  name?: string;
  /** With `range`, these lines of the file are sent along */
  uri?: string | null;
  range?: Range | null;
  /** It works on a git branch of its own */
  worktree?: boolean;
}

export interface Spawned {
  sessionId: string;
  parentSessionId: string;
}

/** Where an update stands in the log. */
export interface Stamp {
  seq?: number | null;
  at?: number | null;
}

export interface StateStamp {
  seq?: number | null;
  at?: number | null;
  /** The turn that began, that got another prompt, or that ended */
  turnId?: string | null;
  /** true: the turn begins here; false: a prompt joins it */
  opens?: boolean | null;
  /** With `idle`: how the turn ended */
  stop?: string | null;
  /** With `idle`: a message for the person; empty after a usual end */
  message?: string | null;
}

/** What the session does now. Only updates that begin, join or end a turn have a `turnId`; when a question is asked or answered, or when the conversation is compacted between turns, there is none. */
export interface StateUpdate {
  sessionUpdate: "state_update";
  _meta?: MetaStateStamp | null;
  /** requires_action: a question is open */
  state: "running" | "requires_action" | "idle";
  /** At the end of a turn: ACP's word for `_meta.magy.stop` */
  stopReason?: string | null;
  /** With the stop reason `error` */
  error?: Failure | null;
}

export interface SubscribeParams {
  sessionId: string;
  from?: From;
}

export interface SubscribeResult {
  /** Seq of the last entry of the log. If the client has a later one, that was of another session with the same id */
  headSeq: number;
  /** Seq of the first entry of `events`: 500 entries at most, so it may lie above what was asked for; older ones by magy/session/events. Without any: `headSeq` + 1 */
  floorSeq: number;
  summary: Summary;
  events: Update[];
  /** Later entries follow as magy/session/update */
  more: boolean;
}

/** A session at a glance; what a client shows around the transcript. */
export interface Summary {
  session: SessionInfo;
  configOptions: ConfigOption[];
  /** Prompts and messages that wait */
  waiting: Waiting[];
  /** Its open questions, and those of all below it */
  interactions: Interaction[];
  /** Each a `PlanEntry` */
  plan: PlanEntry[];
  usage: Record<string, number>;
  /** {amount, currency, unpriced}: US dollars; `unpriced` counts the requests whose price is not known */
  cost: Cost;
  /** Including what all children below it used */
  treeUsage: Record<string, number>;
  treeCost: Cost;
  /** {tokens, window}: how full the context window is, roughly; window 0: unknown */
  context: Record<string, number>;
}

export interface SummaryResult {
  /** Markdown */
  text: string;
}

export interface Symbol {
  name: string;
  /** A word such as "function", "class" */
  kind?: string;
  uri: string;
  /** The range of the whole definition, or of its name */
  range: Range;
  container?: string | null;
}

export interface SymbolsAnswer {
  /** There are more */
  truncated?: boolean;
  symbols: Symbol[];
}

export interface SymbolsParams {
  /** The outline of one file; null: of the workspace */
  uri: string | null;
  /** Part of the name; empty: all of the file's */
  query: string;
}

/** A task as it is now, with all attempts at it together. */
export interface TaskShown {
  id: string;
  agent: string;
  model: string;
  state: "waiting" | "ready" | "running" | "asking" | "completed" | "failed" | "cancelled" | "skipped";
  needs: string[];
  /** How many tasks come before it, one after the other */
  depth: number;
  /** The child of its latest attempt */
  sessionId: string | null;
  attempts: number;
  /** Of attempts that have ended */
  seconds: number;
  tokens: number;
  cost: Record<string, unknown>;
  /** All of this on one line, for people */
  line: string;
  /** The beginning of its prompt */
  about: string;
}

/** How two votes stand to each other. */
export interface TensionShown {
  between: ("melchior" | "balthasar" | "casper")[];
  /** agree: the same verdict and tier; beside: on one side; apart: one of them is on no side; against: they disagree */
  kind: "agree" | "beside" | "apart" | "against";
  /** Of their confidence, in points */
  gap: number;
  /** All of this on one line, for people */
  line: string;
  /** What each has against the other's view */
  said: string[];
}

export interface TextBlock {
  type: "text";
  text: string;
}

export interface TextResource {
  uri: string;
  text: string;
}

/** A delta: more output of a running command, to be appended. */
export interface ToolCallContentChunk {
  sessionUpdate: "tool_call_content_chunk";
  _meta?: MetaStamp | null;
  toolCallId: string;
  content: Output;
}

/** News of a tool call. The model made it (`name`, `rawInput`); the rules judged it (`kind`, `locations`, `_meta.magy.decision`, a better `title`, and a preview as `content`); it started; it ended (`content`). Calls that only read are not reported as started. */
export interface ToolCallUpdate {
  sessionUpdate: "tool_call_update";
  _meta?: MetaCallStamp | null;
  toolCallId: string;
  /** The tool */
  name?: string | null;
  /** One line for people */
  title?: string | null;
  /** ACP's word: read | edit | execute | ... */
  kind?: string | null;
  status?: "pending" | "in_progress" | "completed" | "failed" | "cancelled" | null;
  /** The arguments; a string where they are not a JSON object */
  rawInput?: Record<string, unknown> | string | null;
  /** Files, absolute */
  locations?: Place[] | null;
  /** Replaces the content that came before */
  content?: (Output | Diff)[] | null;
}

export interface TrustParams {
  root: string;
  /** Null only asks */
  trusted?: boolean | null;
}

export interface TrustResult {
  root: string;
  trusted: boolean;
  /** Settings of the project that Magy ignores until it is trusted */
  ignored: string[];
}

/** One update of a page: what `magy/session/update` would have carried, with `seq` and `at` beside it. */
export interface Update {
  seq: number;
  at: number;
  update: AnyUpdate;
}

export interface UsageStamp {
  seq?: number | null;
  at?: number | null;
  /** `messageId` of the reply, or `compaction`, `title`, ... */
  request: string;
  model: string;
  usage: Record<string, number>;
  /** US dollars; null: the price is unknown */
  cost: number | null;
}

/** What one request to a model took. Sums are in the session's `Summary`. */
export interface UsageUpdate {
  sessionUpdate: "usage_update";
  _meta?: MetaUsageStamp | null;
  /** Tokens, prompt and reply together */
  used: number;
}

/** A person's prompt arrived. It enters the conversation when `_magy_queue` says `admitted`. */
export interface UserMessage {
  sessionUpdate: "user_message";
  _meta?: MetaStamp | null;
  messageId: string;
  content: (TextBlock | NamedLink | ResourceBlock)[];
}

export interface Waiting {
  messageId: string;
  delivery: string;
  text: string;
}

export interface WithdrawParams {
  sessionId?: string | null;
  /** A workspace root */
  root?: string | null;
  grantId: string;
}

export interface WithdrawResult {
  withdrawn: boolean;
}

/** A part of a line that differs, in columns of the negotiated encoding. `line` counts from the first line of that side of the hunk. */
export interface Word {
  side: "old" | "new";
  line: number;
  start: number;
  end: number;
}

/** What happens in a session, told apart by `sessionUpdate`. */
export type AnyUpdate = UserMessage | AgentMessageChunk | AgentMessage | AgentThoughtChunk | AgentThought | ToolCallUpdate | ToolCallContentChunk | StateUpdate | Queue | InteractionUpdate | Notice | SessionInfoUpdate | ConfigOptionUpdate | UsageUpdate | PlanUpdate | ProgressUpdate | MailUpdate | ClosedUpdate | RestoredUpdate;

/** What the client asks: parameters and result by name. */
export interface Requests {
  /** Start a session. */
  "magy/session/new": {
    params: NewParams;
    result: NewResult;
  };
  /** Sessions, the given project's first, newest first. */
  "magy/session/list": {
    params: ListParams;
    result: ListResult;
  };
  /** Subscribe, and continue a turn that a crash or a closed editor interrupted. */
  "magy/session/resume": {
    params: SubscribeParams;
    result: SubscribeResult;
  };
  /** Attach: a bounded page of the log, then live updates. */
  "magy/session/subscribe": {
    params: SubscribeParams;
    result: SubscribeResult;
  };
  /** Unsubscribe: no more updates. */
  "magy/session/unsubscribe": {
    params: SessionParams;
    result: Empty;
  };
  /** Another page of the log. */
  "magy/session/events": {
    params: EventsParams;
    result: EventsResult;
  };
  /** Accept a prompt and answer at once; updates report what follows. */
  "magy/session/prompt": {
    params: PromptParams;
    result: PromptResult;
  };
  /** Stop the running turn. */
  "magy/session/cancel": {
    params: CancelParams;
    result: CancelResult;
  };
  /** Cancel what runs, also in its children, end background commands, and unsubscribe; the log stays, and a prompt goes on with it. */
  "magy/session/close": {
    params: SessionParams;
    result: Empty;
  };
  /** Delete a session and its children permanently. What this process runs there is cancelled; where another process runs it, the answer is `busy`. */
  "magy/session/delete": {
    params: SessionParams;
    result: DeleteResult;
  };
  /** A new session that shares this one's history up to an entry. */
  "magy/session/fork": {
    params: ForkParams;
    result: NewResult;
  };
  /** Get the options that a new session would begin with, and what may be chosen. */
  "magy/session/options": {
    params: OptionsParams;
    result: ConfigResult;
  };
  /** Agent, model, title, `review` (review | propose | auto: what happens to edits), or `bypass` (on | off: answer questions with yes). */
  "magy/session/set_config_option": {
    params: ConfigParams;
    result: ConfigResult;
  };
  /** Reorder waiting prompts. */
  "magy/queue/reorder": {
    params: ReorderParams;
    result: QueueResult;
  };
  /** Drop waiting prompts. */
  "magy/queue/drop": {
    params: DropParams;
    result: QueueResult;
  };
  /** Replace the older part of what the model sees by a summary; the transcript stays. */
  "magy/session/compact": {
    params: CompactParams;
    result: Empty;
  };
  /** A summary of the session as for a pull request. Takes as long as the model does. */
  "magy/session/summarize": {
    params: SessionParams;
    result: SummaryResult;
  };
  /** List the agents of a project, except the hidden ones. */
  "magy/agent/list": {
    params: AgentsParams;
    result: AgentsResult;
  };
  /** Report the state of the agents in this process; asks no model. */
  "magy/agent/health": {
    params: Empty;
    result: AgentHealthResult;
  };
  /** Start a child of a session on a task, with at most its permissions. Answers at once. */
  "magy/child/spawn": {
    params: ChildSpawnParams;
    result: ChildSpawned;
  };
  /** Send a message to an agent: a prompt, data for programs, or a signal. */
  "magy/child/send": {
    params: ChildSendParams;
    result: ChildSent;
  };
  /** Wait until any or all of some children are idle. A time-out cancels nothing, and nothing is missed between two waits. The request can be cancelled. */
  "magy/child/wait": {
    params: ChildWaitParams;
    result: ChildWaited;
  };
  /** List the children of a session, or all; parents come before their own children. */
  "magy/child/list": {
    params: ChildListParams;
    result: ChildListResult;
  };
  /** Close a child: it accepts nothing more, and its log stays. Closing it again has no effect. */
  "magy/child/close": {
    params: ChildCloseParams;
    result: ChildClosed;
  };
  /** Get the limits on the depth and number of children, and their present number; also changes the limits, even while children run. */
  "magy/child/limits": {
    params: ChildLimitsParams;
    result: ChildLimits;
  };
  /** Have a graph of tasks done by children of a session, or go on with one. Answers at once; updates report what follows. */
  "magy/graph/run": {
    params: GraphRunParams;
    result: GraphRunResult;
  };
  /** Show how the graphs of a session are: each task, who does it, and what it took. */
  "magy/graph/show": {
    params: GraphShowParams;
    result: GraphShowResult;
  };
  /** List the open questions: of a session, of a workspace root, or all. */
  "magy/interaction/list": {
    params: InteractionsParams;
    result: InteractionsResult;
  };
  /** Answer a question; the first answer wins. */
  "magy/interaction/respond": {
    params: RespondParams;
    result: RespondResult;
  };
  /** List the remembered permissions of a session and its project, or of a project. */
  "magy/permission/list": {
    params: GrantsParams;
    result: GrantsResult;
  };
  /** Forget one of them. */
  "magy/permission/withdraw": {
    params: WithdrawParams;
    result: WithdrawResult;
  };
  /** List the files in which something waits for a decision. */
  "magy/review/list": {
    params: ReviewListParams;
    result: ReviewListResult;
  };
  /** Get the hunks of a file, derived from its present text. */
  "magy/review/get": {
    params: ReviewGetParams;
    result: ReviewGetResult;
  };
  /** Accept, reject or amend hunks. Hunks that no longer exist are reported as stale. */
  "magy/review/resolve": {
    params: ReviewResolveParams;
    result: ReviewOutcome;
  };
  /** Take back any decision, not only the last. */
  "magy/review/undo": {
    params: ReviewUndoParams;
    result: ReviewOutcome;
  };
  /** Comment on a hunk; it stays pending, and the model sees the comment. */
  "magy/review/comment": {
    params: ReviewCommentParams;
    result: ReviewOutcome;
  };
  /** Find the next or previous pending hunk; after the last file the first one follows. */
  "magy/review/navigate": {
    params: ReviewNavigateParams;
    result: ReviewNavigateResult;
  };
  /** List the turns of a session that one can go back to. */
  "magy/checkpoint/list": {
    params: CheckpointListParams;
    result: CheckpointListResult;
  };
  /** Preview what going back (or forward again) would do now. */
  "magy/checkpoint/preview": {
    params: CheckpointParams;
    result: CheckpointPreview;
  };
  /** Go back to where a turn started, or undo that. Changes by others stay. */
  "magy/checkpoint/restore": {
    params: CheckpointRestoreParams;
    result: CheckpointRestored;
  };
  /** Preview what an edit, in any format, would do to the live texts. Changes nothing. */
  "magy/edit/preview": {
    params: EditParams;
    result: EditResult;
  };
  /** Make an edit; its changes are then under review like an agent's. */
  "magy/edit/apply": {
    params: EditApplyParams;
    result: EditResult;
  };
  /** Get what is around the cursor, as blocks for a prompt: the client shows them to the person, then sends them. */
  "magy/context/get": {
    params: ContextParams;
    result: ContextResult;
  };
  /** Complete a prompt: after `@` files and symbols, at the beginning also skills, agents and commands; after `/` at the beginning actions. */
  "magy/prompt/complete": {
    params: CompleteParams;
    result: CompleteResult;
  };
  /** Report whether inline completion is on, and what it took today. */
  "magy/completion/status": {
    params: CompletionStatusParams;
    result: CompletionStatus;
  };
  /** Report what is wrong with this installation, and how to fix it. Takes a minute and a half at most. */
  "magy/doctor/run": {
    params: DoctorParams;
    result: DoctorResult;
  };
  /** Rewrite a place of a file by an instruction: answers at once; magy/rewrite/draft tells the rest. The change is then under review like an agent's. */
  "magy/rewrite/start": {
    params: RewriteStartParams;
    result: RewriteStartResult;
  };
  /** List the models of the providers that can be used, which are asked for them: that may take some seconds. One that does not answer is named, with the reason. */
  "magy/model/list": {
    params: ModelsParams;
    result: ModelsResult;
  };
  /** List the rulings of a session or of all of a project, worked out again from the votes in the log. A prompt that begins with `@magi` asks for one. */
  "magy/magi/list": {
    params: MagiListParams;
    result: MagiListResult;
  };
  /** Accept a ruling that overturns an earlier one; until then the earlier one holds. */
  "magy/magi/accept": {
    params: MagiAcceptParams;
    result: MagiAccepted;
  };
  /** Read CASPER's emotional log of a project, take entries out, or say that it was read. */
  "magy/magi/log": {
    params: MagiLogParams;
    result: MagiLogResult;
  };
  /** How the MCP servers of a project are doing, and what tools they give. Starts none, unless `connect` names it. */
  "magy/mcp/list": {
    params: McpServersParams;
    result: McpServersResult;
  };
  /** Get or set whether a project is trusted, that is, whether its own configuration may do more than restrict. */
  "magy/workspace/trust": {
    params: TrustParams;
    result: TrustResult;
  };
}

/** What the server asks the editor: parameters and result by name. */
export interface EditorRequests {
  /** Save a buffer. Only sent if the client announced `editor.save`. */
  "magy/editor/save": {
    params: SaveParams;
    result: SaveResult;
  };
  /** Ask for diagnostics. Only sent if announced, like all requests below; the client answers at once, from what the editor already knows. */
  "magy/editor/diagnostics": {
    params: DiagnosticsParams;
    result: DiagnosticsAnswer;
  };
  /** Ask where the name at this place is defined. */
  "magy/editor/definition": {
    params: PlaceParams;
    result: LocationsAnswer;
  };
  /** Ask where the name at this place is used. */
  "magy/editor/references": {
    params: PlaceParams;
    result: LocationsAnswer;
  };
  /** Ask for the definitions in a file, or in the workspace by name. */
  "magy/editor/symbols": {
    params: SymbolsParams;
    result: SymbolsAnswer;
  };
  /** Evaluate code that a person has allowed. Announced as `eval: "elisp"`. */
  "magy/editor/eval": {
    params: EvalParams;
    result: EvalAnswer;
  };
}

/** Commands with an object as their argument: parameters and result by name. */
export interface Commands {
  /** Run an action: a prompt with the action's text and the selected lines. Answers at once. */
  "magy.action.run": {
    params: ActionRun;
    result: Prompted;
  };
  /** Ask anything. Answers at once. */
  "magy.prompt": {
    params: PromptRun;
    result: Prompted;
  };
  /** Rewrite the lines by an instruction; the change is under review. Answers at once. */
  "magy.rewrite": {
    params: RewriteCommand;
    result: Prompted;
  };
  /** Stop a running turn. */
  "magy.cancel": {
    params: CancelRun;
    result: Cancelled;
  };
  /** Start a session; later commands without a `sessionId` go there. */
  "magy.session.new": {
    params: NewRun;
    result: NewMade;
  };
  /** Show a session's transcript as Markdown, with links to those of its children. */
  "magy.transcript.show": {
    params: LastUsed;
    result: Shown;
  };
  /** Start a child of a session on a task. Answers at once; a notification tells how it ended. */
  "magy.child.spawn": {
    params: SpawnRun;
    result: Spawned;
  };
  /** List the children of a session, also in a message window. */
  "magy.child.list": {
    params: LastUsed;
    result: ChildListResult;
  };
  /** Close a child and all below it: they accept nothing more; `cancel` also stops them. */
  "magy.child.close": {
    params: CloseRun;
    result: ChildClosed;
  };
}

/** Notifications from the server: the type of their parameters. */
export interface Notifications {
  /** What happens in a session that the client subscribed to. [Updates](#updates) has the kinds. */
  "magy/session/update": SessionUpdate;
  /** Questions were opened or resolved, in any session of this workspace, whichever process runs it. */
  "magy/interaction/changed": InteractionChanged;
  /** The state of a child that started, became idle, asks, has a result or was closed. Sent for the trees in which this connection is subscribed to any session; a burst of changes is sent once. */
  "magy/child/changed": ChildChanged;
  /** Decisions, edits, or typing (once it pauses) changed what is pending in these files. Sent to clients that announced `review` or `interactions`. */
  "magy/review/changed": ReviewChanged;
  /** The progress of a rewrite that this client started; a rewrite resumed after a crash is reported to clients that announced `review` or `interactions`. */
  "magy/rewrite/draft": RewriteDraft;
  /** What inline completion took today, after each request that this process made; the settings are those of the first project. Sent to clients that announced `review` or `interactions`. */
  "magy/completion/changed": CompletionStatus;
  /** A session's row in magy/session/list changed, or the session was deleted, by whichever process. Sent to clients that announced `interactions`. */
  "magy/session/listChanged": ListChanged;
}

/** Every name of `Notifications`. */
export const NOTIFICATIONS = [
  "magy/session/update",
  "magy/interaction/changed",
  "magy/child/changed",
  "magy/review/changed",
  "magy/rewrite/draft",
  "magy/completion/changed",
  "magy/session/listChanged",
] as const;

/** Every name of `EditorRequests`. */
export const EDITOR_REQUESTS = [
  "magy/editor/save",
  "magy/editor/diagnostics",
  "magy/editor/definition",
  "magy/editor/references",
  "magy/editor/symbols",
  "magy/editor/eval",
] as const;

/** What the server takes in `workspace/executeCommand`: the language client registers a
 * command of each name, so that nothing else may. */
export const SERVER_COMMANDS = [
  "magy.hunk.accept",
  "magy.hunk.reject",
  "magy.hunk.comment",
  "magy.file.acceptAll",
  "magy.file.rejectAll",
  "magy.review.next",
  "magy.review.previous",
  "magy.action.run",
  "magy.prompt",
  "magy.rewrite",
  "magy.cancel",
  "magy.session.new",
  "magy.transcript.show",
  "magy.child.spawn",
  "magy.child.list",
  "magy.child.close",
] as const;
