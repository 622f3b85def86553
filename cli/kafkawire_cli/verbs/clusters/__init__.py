"""The verbs for live clusters, nodes and their files."""
