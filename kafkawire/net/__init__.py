"""The only sockets and the only clock: asyncio shells around the client's and broker's machines.

Law: a shell decides nothing; it carries events in and effects out.
"""
