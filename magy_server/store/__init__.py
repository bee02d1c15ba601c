"""Where logs live: `SqliteStore` on disk, `MemoryStore` for tests and throw-away sessions."""
