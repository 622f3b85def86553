"""Shows the rows of log files: JSON lines, text, Parquet."""
