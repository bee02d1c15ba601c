"""Deliberations: how three agents' votes are read, and the ruling that they come to. Pure."""
