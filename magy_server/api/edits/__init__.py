"""Edits that a front door asks for."""
