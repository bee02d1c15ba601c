"""What a hunk changes at the place where it was found."""
