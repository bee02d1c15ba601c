"""Listeners follow the log and never stand in its way: audit, readable mirrors, titles."""
