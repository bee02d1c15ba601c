"""This package connects Magy to servers of the Model Context Protocol (MCP), whose tools agents may
then use."""
