"""Writing: the rows of tables into Parquet."""
