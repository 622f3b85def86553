"""What the asyncio clients have in common: drivers, sessions, calls that wait, credentials."""
