"""These tools read web pages and search the web."""
