import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import type { Magy } from "../magy";
import type { AnyUpdate } from "../wire/generated";
import { repositoryOf } from "./git";

/** Writes a message for what is to be committed into the box of the Source Control view. */
export async function writeCommitMessage(magy: Magy, root: vscode.Uri | undefined): Promise<void> {
  const repository = await repositoryOf(root);
  const { indexChanges, workingTreeChanges, untrackedChanges = [] } = repository.state;
  if (indexChanges.length + workingTreeChanges.length + untrackedChanges.length === 0) {
    throw new Error("There is nothing to commit.");
  }
  const begun = repository.inputBox.value;
  const progress = {
    location: vscode.ProgressLocation.Notification,
    title: "Magy writes a commit message",
    cancellable: true,
  };
  const message = await vscode.window.withProgress(progress, (_, token) =>
    asked(magy, repository.rootUri.fsPath, begun, token),
  );
  if (message === undefined) return;
  // What the person typed meanwhile is theirs.
  if (repository.inputBox.value === begun) repository.inputBox.value = message;
  else await vscode.env.clipboard.writeText(message);
}

/** The answer of the agent `commit`, in a session that is gone afterwards. undefined: it was
 * cancelled. */
async function asked(
  magy: Magy,
  cwd: string,
  begun: string,
  token: vscode.CancellationToken,
): Promise<string | undefined> {
  const { connection } = magy;
  const sessionId = `commit-${randomUUID()}`;
  await connection.request("magy/session/new", { sessionId, cwd, agent: "commit" });
  try {
    return await answered(magy, sessionId, begun, token);
  } finally {
    // Nobody goes on with it, and one for each commit would fill the list of sessions.
    await connection.request("magy/session/delete", { sessionId }).catch(() => undefined);
  }
}

/** What the agent answers. undefined: it was cancelled. */
async function answered(
  { connection, sessions }: Magy,
  sessionId: string,
  begun: string,
  token: vscode.CancellationToken,
): Promise<string | undefined> {
  const text = begun.trim() ? `/commit The person has begun it: ${begun}` : "/commit";
  const prompt = { sessionId, messageId: "commit", prompt: [{ type: "text" as const, text }] };
  return new Promise((resolve, reject) => {
    let answer = "";
    const end = (settle: () => void) => {
      listening.dispose();
      cancelling.dispose();
      settle();
    };
    const hear = (update: AnyUpdate) => {
      if (update.sessionUpdate === "agent_message") {
        answer = update.content.map((block) => block.text).join("") || answer;
      }
      if (update.sessionUpdate !== "state_update" || update.state !== "idle") return;
      const about = update._meta?.magy;
      if (about?.turnId !== "commit") return;
      if (about.stop === "cancelled") end(() => resolve(undefined));
      else if (about.stop === "end_turn" && answer) end(() => resolve(answer.trim()));
      else end(() => reject(new Error(about.message || "The agent wrote no message.")));
    };
    const listening = sessions.subscribe(sessionId, {
      page: (page) => page.events.forEach((event) => hear(event.update)),
      update: hear,
      failed: (error) => end(() => reject(error)),
    });
    const cancelling = token.onCancellationRequested(() => {
      void connection.request("magy/session/cancel", { sessionId });
    });
    connection.request("magy/session/prompt", prompt).catch((error: Error) => end(() => reject(error)));
  });
}
