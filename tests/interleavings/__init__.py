"""Random interleavings of a person's typing with all that Magy does to an open buffer.

Each key that is struck has a mark of its own, each line that Magy is to change a tag, and the rest
of the text is unlike anything else: so what must stand in the end is known without asking Magy.
"""
