"""This package makes the parts of a prompt, measures it, and decides what a compaction leaves."""
