"""Writes the rows of tables to Parquet."""
