"""What every front door shares and none owns: the verbs, and what follows a session."""
