"""A person has a selection rewritten in place: it begins, streams, and is accepted or refused."""
