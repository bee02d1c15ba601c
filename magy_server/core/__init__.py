"""The rules of Magy as values and pure functions: events, state, steps, permissions, prompts."""
