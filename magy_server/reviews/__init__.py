"""Hunks under review, what is decided about them, and going back: features on `Sessions`."""
