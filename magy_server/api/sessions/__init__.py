"""Front doors show sessions, questions and transcripts, and act on them, through this package."""
