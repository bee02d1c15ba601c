"""Providers write requests to models and read their answers, in the wires that they speak."""
