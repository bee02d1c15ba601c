"""Transports carry a provider's requests to its server and bring back the answers."""
