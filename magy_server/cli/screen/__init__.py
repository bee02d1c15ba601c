"""This package turns updates into lines on a terminal, and reads the keys of the person."""
