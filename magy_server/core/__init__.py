"""Magy's rules are values and pure functions: events, state, steps, permissions, prompts."""
