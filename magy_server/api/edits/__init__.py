"""Front doors preview and apply edits through this package."""
