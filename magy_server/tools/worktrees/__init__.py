"""This package makes git worktrees for child agents, lands their work, and lists what is left."""
