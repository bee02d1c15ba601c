"""This package works out what a hunk changes at the place where it was found."""
