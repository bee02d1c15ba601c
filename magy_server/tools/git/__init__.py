"""These tools work with git, and run the git program safely."""
