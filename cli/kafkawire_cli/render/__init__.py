"""Output of the verbs: tables, trees, JSON lines, reports."""
