"""A selection rewritten in place: begun, shown while it streams, accepted or refused."""
