"""
What people touch: settings, the embedded servers, the query path, HTTP, MCP, CLI and client.

Promises: importing it connects to nothing, reads no environment and configures no logging.
Does not promise: decisions of its own. Every door parses, calls a use case, maps the answer.
"""

__all__: list[str] = []
