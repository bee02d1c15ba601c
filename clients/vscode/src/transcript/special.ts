/** What a prompt is that the client itself carries out. */
type Special = { do: "new" } | { do: "compact"; focus: string } | { do: "spawn"; agent: string; task: string; worktree: boolean };

/** `@clear`, `@compact WHAT TO KEEP` and `@spawn AGENT [--worktree] TASK`, as a whole; else undefined. */
export function special(text: string): Special | undefined {
  const said = text.trim();
  if (said === "@clear") return { do: "new" };
  const compact = /^@compact(?:\s+(.*))?$/s.exec(said);
  if (compact) return { do: "compact", focus: compact[1] ?? "" };
  const [, agent, worktree, task] = /^@spawn\s+(\S+)\s+(--worktree\s+)?(.+)$/s.exec(said) ?? [];
  return agent && task ? { do: "spawn", agent, task, worktree: worktree !== undefined } : undefined;
}
