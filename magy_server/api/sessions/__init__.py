"""Sessions, questions and transcripts, as front doors show them and act on them."""
