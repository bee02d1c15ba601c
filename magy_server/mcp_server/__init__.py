"""`magy mcp serve` offers sessions, children, review and the edit engine to other agents, as a
server of the Model Context Protocol (MCP)."""
