/** What the transcript's page and the extension say to each other. */

import type {
  AnyUpdate,
  CheckpointPreview,
  CheckpointRestored,
  Child,
  Completion,
  ConfigOption,
  ContextItem,
  EventsResult,
  InteractionChanged,
  SubscribeResult,
} from "../wire/generated";

export type Delivery = "auto" | "queue" | "interrupt";

export interface Picture {
  name: string;
  mimeType: string;
  /** Base64. */
  data: string;
}

/** What goes along with a prompt besides its words. */
export interface Along {
  /** Ids of the context items that were left in. */
  context: string[];
  pictures: Picture[];
}

/** A thing that may go along: shown as a chip. */
export interface Chip {
  id: string;
  kind: ContextItem["kind"] | "problems" | "terminal";
  label: string;
  /** Whether it goes along unless the person takes it out. */
  default: boolean;
}

/** What the page keeps over a reload of itself. */
export interface Kept {
  sessionId?: string;
  history?: string[];
  folds?: [string, boolean][];
  /** What the person took out of what goes along, or put in: ids of chips. */
  toggled?: [string, boolean][];
  /** The block at the top of the view and how far it is above; undefined: at the end. */
  anchor?: Anchor | undefined;
}

export interface Anchor {
  id: string;
  offset: number;
}

/** What a person left in a page: what is written and not sent, and where the transcript was read. */
export interface Left {
  text: string;
  sessionId: string;
  /** Undefined: at the end. */
  anchor?: Anchor | undefined;
}

export type Preview = Pick<CheckpointPreview, "turnId" | "turns" | "files" | "conversation" | "prompt" | "why">;

export type ToPage =
  /** The session to show. `resumed`: the page adds to what is shown; `folder`: of the session, unless all are of one. */
  | { type: "attached"; sessionId: string; page: SubscribeResult; resumed: boolean; parent: string; folder: string }
  /** No session is there yet: the input makes one. */
  | { type: "none" }
  /** What the session that is made then begins with. */
  | { type: "options"; options: ConfigOption[] }
  | { type: "failed"; message: string }
  | { type: "updates"; sessionId: string; updates: AnyUpdate[] }
  | { type: "children"; children: Child[] }
  | { type: "interactions"; news: InteractionChanged }
  /** How much of all files waits for a decision. */
  | { type: "review"; changes: number; files: number }
  | { type: "older"; sessionId: string; before: number; page: EventsResult }
  | { type: "olderFailed"; message: string }
  | { type: "connection"; state: string; message: string }
  | { type: "completions"; id: number; prefix: string; items: Completion[]; incomplete: boolean }
  | { type: "chips"; chips: Chip[] }
  /** Those that a page before this one had and did not send. */
  | { type: "pictures"; pictures: Picture[] }
  /** The prompt was accepted, or refused: then its words go back into the input. */
  | { type: "accepted"; messageId: string }
  | { type: "refused"; messageId: string; text: string; message: string }
  | { type: "answered"; interactionId: string; outcome: string; scope: string; reason: string }
  | { type: "preview"; turnId: string; preview?: Preview; message?: string }
  | { type: "restored"; turnId: string; result?: Pick<CheckpointRestored, "files" | "prompt">; message?: string }
  | { type: "codeDone"; id: number; message: string; failed: boolean }
  | { type: "insert"; text: string }
  /** Of a page before this one; undefined: nothing. The page tells what is left in it only after this. */
  | { type: "left"; left: Left | undefined }
  /** What was said in a turn that is undone: to be said otherwise, if nothing is written yet. */
  | { type: "offer"; text: string; turnId: string }
  | { type: "focus" }
  | { type: "say"; message: string };

/** A command of the extension that the page has a button for. */
export type Offered =
  | "installServer" | "restartServer" | "runDoctor" | "selectModel" | "setApiKey" | "locateServer"
  | "reviewAll" | "nextChange" | "acceptAll" | "rejectAll";

export type FromPage =
  | { type: "ready"; kept: Kept }
  | { type: "left"; left: Left }
  /** Those that go along with the next prompt, as they are now. */
  | { type: "pictures"; pictures: Picture[] }
  | { type: "older"; before: number }
  | { type: "prompt"; messageId: string; text: string; delivery: Delivery; along: Along; replaces?: { turnId: string; files: boolean } }
  | { type: "cancel" }
  | { type: "compact" }
  | { type: "complete"; id: number; before: string }
  | { type: "mentions"; names: string[] }
  | { type: "open"; path: string; line?: number }
  | { type: "link"; href: string }
  | { type: "text"; title: string; text: string; language: string }
  | { type: "answer"; interactionId: string; sessionId: string; outcome: "allow" | "refuse"; scope: "once" | "session" | "project"; reason: string }
  | { type: "option"; configId: "agent" | "model" | "review" | "bypass"; value: string }
  | { type: "drop"; messageId: string }
  | { type: "reorder"; order: string[] }
  | { type: "child"; action: "show" | "wait" | "close" | "stop"; sessionId: string }
  | { type: "show"; sessionId: string }
  | { type: "code"; action: "copy" | "insert" | "apply"; id: number; text: string; info: string }
  | { type: "copy"; text: string }
  | { type: "preview"; turnId: string }
  | { type: "restore"; turnId: string; files: boolean; conversation: boolean }
  | { type: "run"; command: Offered }
  /** Asks anew for the options that a session would begin with. */
  | { type: "lookAgain" }
  | { type: "dropped"; uris: string[] };
