"""Magy is an agent backend for editors. Importing this package does no work."""

__version__ = "0.1.0"
