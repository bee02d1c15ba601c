"""This front door speaks the Agent Client Protocol: a translator over `api/`."""
