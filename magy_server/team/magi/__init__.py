"""A deliberation is run by three children, isolated from each other, whose votes the log keeps."""
