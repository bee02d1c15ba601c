"""This package helps a person to write a prompt: by completion, and by context from the editor."""
