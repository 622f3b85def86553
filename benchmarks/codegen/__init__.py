"""The generator and what its targets make."""
