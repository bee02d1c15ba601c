"""This package moves changes onto a text that somebody has typed in since."""
