"""What runs the machines of brokers in asyncio: listeners, connections, timers, recordings."""
