import type { Interaction, InteractionChanged } from "../wire/generated";

/** Returns the open questions by id, the oldest first: those of a list, and what changed since it was asked for. */
export function merged(listed: readonly Interaction[], since: readonly InteractionChanged[]): Map<string, Interaction> {
  const oldest = [...listed].sort((a, b) => a.createdAt.localeCompare(b.createdAt));
  const open = new Map(oldest.map((one) => [one.interactionId, one]));
  for (const change of since) apply(open, change);
  return open;
}

export function apply(open: Map<string, Interaction>, { opened, resolved }: InteractionChanged): void {
  for (const one of opened) open.set(one.interactionId, one);
  for (const id of resolved) open.delete(id);
}
