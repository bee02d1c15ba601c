"""The tools for git, and the git program run safely."""
