"""What a terminal shows and what it is asked: updates as lines, and keys."""
