"""The MCP server: what was ingested, and the queue, as tools for models."""
