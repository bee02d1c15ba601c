"""Logs live here: `SqliteStore` keeps them on disk, `MemoryStore` keeps them in memory, for
tests."""
