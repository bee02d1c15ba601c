"""Front doors show hunks under review, decide about them, and go back through this package."""
