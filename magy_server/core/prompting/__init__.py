"""What goes into a prompt, how large it is, and what a compaction leaves of it."""
