"""This package finds where in a text the lines of a hunk are."""
