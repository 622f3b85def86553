"""What the verbs for live clusters do: find offsets, read records, reset offsets of groups."""
