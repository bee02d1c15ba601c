"""The processes of one person reach each other through this package."""
