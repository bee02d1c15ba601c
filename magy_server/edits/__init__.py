"""The edit engine is pure and usable alone: it imports nothing else of Magy.

formats -> hunks -> locate -> changes -> rebase onto the live text -> hunks for review
"""
