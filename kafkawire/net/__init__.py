"""The only sockets and clocks: asyncio shells around the machines of clients and brokers.

A shell decides nothing; it passes events in and effects out.
"""
