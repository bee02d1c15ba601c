"""The tool `bash` judges commands, runs them, reads their output and ends them."""
