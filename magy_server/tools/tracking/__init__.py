"""Which files a command changed, and which changes are somebody else's."""
