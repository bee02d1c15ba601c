"""Changes moved onto a text that somebody has typed in since."""
