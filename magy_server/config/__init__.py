"""This package reads what configures Magy: settings, agents, trust, and where files are."""
