"""What carries a provider's requests to its server and brings back the answers."""
