"""How long a test waits for something that must come."""

PATIENCE = 60.0
"""Seconds. It is generous, since a wait that is met costs nothing, and on a machine that is busy
with other things everything takes a multiple of its usual time."""
