"""What a session is after its log: each part of the state with its own fold."""
