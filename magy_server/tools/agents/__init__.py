"""With these tools an agent spawns, messages, awaits and closes other agents, and keeps a plan."""
