"""Each command of the terminal has a module here."""
