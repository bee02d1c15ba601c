"""This package makes text safe to show and to store, and writes sessions as text."""
