"""What helps a person to write a prompt: completion, and context from the editor."""
