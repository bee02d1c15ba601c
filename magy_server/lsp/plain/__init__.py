"""Clients that know only the standard protocol get commands, actions, lenses and messages here."""
