import { randomUUID } from "node:crypto";
import type { Magy } from "../magy";
import { spawnChild } from "../sessions/children";
import type { PromptBlock } from "./context";
import type { Delivery, FromPage } from "./messages";
import { special } from "./special";

type Prompt = Extract<FromPage, { type: "prompt" }>;

/** Sends a prompt to the session that `ensure` returns; `along`: the blocks that go with its words. */
export async function sendPrompt(
  magy: Magy, ensure: () => Promise<string>, prompt: Prompt, along: PromptBlock[],
): Promise<void> {
  const { connection } = magy;
  const blocks = blocksOf(prompt, along);
  const own = special(prompt.text);
  if (own?.do === "new") return void (await magy.sessions.create());
  const sessionId = await ensure();
  if (own?.do === "compact") return void (await connection.request("magy/session/compact", { sessionId, focus: own.focus }));
  if (own?.do === "spawn") {
    const { agent, task, worktree } = own;
    await spawnChild(connection, { parentSessionId: sessionId, agent, worktree, task, along: blocks.slice(1) });
    return;
  }
  if (prompt.replaces) {
    const { turnId, files } = prompt.replaces;
    await connection.request("magy/checkpoint/restore", { sessionId, turnId, files, conversation: true, requestKey: `restore-${randomUUID()}` });
  }
  await deliver(magy, sessionId, prompt.messageId, blocks, prompt.delivery);
}

function blocksOf(prompt: Prompt, along: PromptBlock[]): PromptBlock[] {
  const pictures = prompt.along.pictures.map(({ name, mimeType, data }) => ({ type: "image" as const, mimeType, data, uri: name }));
  const words: PromptBlock[] = prompt.text.trim() ? [{ type: "text", text: prompt.text }] : [];
  return [...words, ...along, ...pictures];
}

async function deliver(magy: Magy, sessionId: string, messageId: string, prompt: PromptBlock[], delivery: Delivery): Promise<void> {
  if (!sessionId.includes("/")) {
    await magy.connection.request("magy/session/prompt", { sessionId, messageId, prompt, delivery });
    return;
  }
  const how = delivery === "auto" ? "steer" : delivery;
  await magy.connection.request("magy/child/send", { sessionId, requestKey: messageId, prompt, delivery: how });
}
