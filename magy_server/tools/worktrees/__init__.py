"""Git worktrees for child agents: how they are made, how their work is landed, and what is left."""
