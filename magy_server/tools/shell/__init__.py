"""The shell tools run commands, read their output and end them; the judge gets its facts here."""
