import { randomUUID } from "node:crypto";
import { join } from "node:path";
import * as vscode from "vscode";
import type { Magy } from "../magy";
import type { ServerLauncher } from "../server/launcher";
import type { SessionInfo } from "../wire/generated";
import { set } from "./choose";
import { rootOf, sessionRow, titleOf } from "./rows";
import { activeFolder, type WindowSessions } from "./service";
import { list } from "./sessionTree";

/** Sessions that can be chosen from. */
const REACH = 1000;

/** Commands about whole sessions; each takes the session of a row, or else the current one. */
export function sessionCommands(
  magy: Magy,
  sessions: WindowSessions,
  launcher: ServerLauncher,
): Record<string, (session?: SessionInfo) => unknown> {
  const { connection } = magy;
  return {
    "magy.newSession": async () => {
      await sessions.create();
      await vscode.commands.executeCommand("magy.focusTranscript");
    },
    "magy.openSession": async (session) => {
      if (session) await open(magy, session.sessionId);
    },
    "magy.resumeSession": async () => {
      const chosen = await pick(magy, "Resume Session");
      if (chosen) await open(magy, chosen.sessionId);
    },
    "magy.renameSession": async (session) => {
      const id = idOf(magy, session);
      const value = await vscode.window.showInputBox({
        title: "Title of the session",
        value: session ? (session.title ?? "") : (sessions.summary?.session.title ?? ""),
      });
      if (value?.trim()) await set(magy, id, "title", value.trim());
    },
    "magy.compactSession": async (session) => {
      // Each agent has a conversation of its own.
      const sessionId = session?.sessionId ?? magy.sessions.current ?? idOf(magy, session);
      const focus = await vscode.window.showInputBox({
        title: "Compact the conversation",
        prompt: "A summary takes the place of what the model sees of older turns. The transcript stays as it is.",
        placeHolder: "What the summary must keep, if anything",
      });
      if (focus !== undefined) await connection.request("magy/session/compact", { sessionId, focus });
    },
    "magy.forkSession": async (session) => {
      const newSessionId = `vscode-${randomUUID()}`;
      await connection.request("magy/session/fork", { sessionId: idOf(magy, session), newSessionId });
      await open(magy, newSessionId);
    },
    "magy.exportSession": (session) => save(magy, launcher, session),
    "magy.closeSession": async (session) => {
      const sessionId = idOf(magy, session);
      await connection.request("magy/session/close", { sessionId });
      sessions.leave(sessionId);
    },
    "magy.deleteSession": async (session) => {
      const sessionId = idOf(magy, session);
      const agreed = await vscode.window.showWarningMessage(
        session ? `Delete “${titleOf(session)}”?` : "Delete this session?",
        { modal: true, detail: "It is deleted with its agents, and what runs there is stopped. The files stay." },
        "Delete",
      );
      if (!agreed) return;
      await connection.request("magy/session/delete", { sessionId });
      sessions.leave(sessionId);
    },
  };
}

export async function open(magy: Magy, sessionId: string): Promise<void> {
  magy.sessions.show(sessionId);
  await vscode.commands.executeCommand("magy.focusTranscript");
}

function idOf(magy: Magy, session: SessionInfo | undefined): string {
  const id = session?.sessionId ?? magy.sessions.current;
  if (!id) throw new Error("No session is shown. Magy: Resume Session chooses one.");
  return rootOf(id);
}

/** Asks at once, so that no key that is pressed meanwhile goes elsewhere. */
async function pick(magy: Magy, title: string): Promise<SessionInfo | undefined> {
  const chosen = await vscode.window.showQuickPick(offered(magy), {
    title,
    placeHolder: "The newest come first",
    matchOnDescription: true,
    matchOnDetail: true,
  });
  return chosen?.session;
}

interface Offer extends vscode.QuickPickItem {
  session?: SessionInfo;
}

async function offered({ connection }: Magy): Promise<Offer[]> {
  const { sessions } = await list(connection, REACH);
  const several = new Set(sessions.map((session) => session.root)).size > 1;
  const items = sessions.map((session): Offer => {
    const { label, description, icon } = sessionRow(session, Date.now(), true);
    const detail = several ? (session.root ?? session.cwd) : undefined;
    return { label: `$(${icon}) ${label}`, description, detail, session };
  });
  return items.length ? items : [{ label: "There are no sessions yet" }];
}

/** Writes a whole session to a file that the person chooses. */
async function save(magy: Magy, launcher: ServerLauncher, session: SessionInfo | undefined): Promise<void> {
  const id = idOf(magy, session);
  const title = session?.title ?? magy.sessions.summary?.session.title ?? "session";
  const folder = activeFolder()?.uri.fsPath ?? process.cwd();
  const name = title.replaceAll(/[^\p{L}\p{N}._ -]+/gu, "").slice(0, 60).trim() || "session";
  const target = await vscode.window.showSaveDialog({
    defaultUri: vscode.Uri.file(join(folder, `${name}.md`)),
    filters: { Markdown: ["md"], "JSON lines, one for each update": ["jsonl"] },
  });
  if (!target) return;
  const format = target.fsPath.endsWith(".jsonl") ? "jsonl" : "markdown";
  await launcher.run(["sessions", "export", id, "--format", format, "--output", target.fsPath]);
  await vscode.window.showTextDocument(target, { preview: true, preserveFocus: true });
}
