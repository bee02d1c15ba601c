"""Providers send requests to models and read the answers, each over the wire of its API."""
