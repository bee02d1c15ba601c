"""This package says, without I/O, what servers of the Model Context Protocol (MCP) are to Magy."""
