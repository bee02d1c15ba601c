"""Child agents are values in this package: their ids, limits, messages and results."""
