"""The tools by which an agent spawns, messages, awaits and closes other agents, and plans."""
