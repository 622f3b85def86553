"""Runs nodes that have their own logs: one as a process, or several in a thread, in asyncio."""
