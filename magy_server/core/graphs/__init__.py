"""This package says what of a graph of tasks may begin, and what the results come to. Pure."""
