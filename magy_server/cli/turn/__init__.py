"""A turn as a terminal shows it, from its prompt to its last line."""
