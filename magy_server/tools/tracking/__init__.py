"""This package tells which files a command changed, and which changes are somebody else's."""
