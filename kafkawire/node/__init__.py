"""One node of a cluster."""
