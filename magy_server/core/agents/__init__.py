"""Child agents as values: their ids, limits, messages and results."""
