"""Planning: which task reads and decodes which parts of which files."""
