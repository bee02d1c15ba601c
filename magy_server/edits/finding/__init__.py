"""Where in a text the lines of a hunk are."""
