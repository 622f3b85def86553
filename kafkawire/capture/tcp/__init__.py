"""TCP: the connection table, reassembly of both directions, gaps, retransmissions and limits."""
