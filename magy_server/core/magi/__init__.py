"""This package says how three agents' votes are read, and which ruling they come to. Pure."""
