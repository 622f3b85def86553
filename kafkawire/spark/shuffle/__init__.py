"""What tasks exchange: rows of packets, by the hashes of their connections; calls on workers."""
