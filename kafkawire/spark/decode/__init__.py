"""Decodes packets in rows of Spark to rows of tables."""
