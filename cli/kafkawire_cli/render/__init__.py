"""What verbs print: tables, trees, JSON lines, reports."""
