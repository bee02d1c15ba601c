"""The tools `glob` and `grep`, which ask ripgrep."""
