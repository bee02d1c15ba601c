"""Magy for clients that know only the standard protocol: commands, actions, lenses, messages."""
