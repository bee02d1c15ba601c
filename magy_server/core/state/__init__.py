"""A session's state follows from its log; each part of the state has its own fold."""
