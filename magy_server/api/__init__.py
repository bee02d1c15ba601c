"""This package holds what all front doors share: the verbs, and what follows a session."""
