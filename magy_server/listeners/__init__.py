"""Listeners get entries after they are in the log: for audit, readable mirrors, and titles."""
