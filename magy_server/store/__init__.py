"""Logs live here: `SqliteStore` keeps them on disk, `MemoryStore` keeps them in memory, for
tests. `FaultyStore` stands before one of them, and fails where a test wants it to."""
