"""The server, with real clients and hostile ones."""
