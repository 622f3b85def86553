"""The asyncio shells, over real sockets."""
