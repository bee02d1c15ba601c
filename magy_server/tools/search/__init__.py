"""The tools `glob` and `grep` ask ripgrep."""
