"""Perturbed edits from real histories, and how an engine fares with them.

`python -m tests.edits.perturbed --seed 1 REPO...` makes from each hunk of a commit a search/replace
edit, spoils it in one of twenty ways as models do, or lets a user type in between, and holds what
the engine makes of it against what must come of it.
"""
