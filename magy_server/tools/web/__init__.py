"""The tools that read web pages and search the web."""
