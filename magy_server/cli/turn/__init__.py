"""A terminal shows a turn from its prompt to its last line."""
