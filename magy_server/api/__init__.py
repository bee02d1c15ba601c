"""This package holds what all front doors share: the verbs, the wire, and how sessions are
followed."""
