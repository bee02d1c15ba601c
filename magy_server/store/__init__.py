"""Logs live here: `SqliteStore` keeps them on disk, `MemoryStore` keeps them for tests and
throw-away sessions."""
