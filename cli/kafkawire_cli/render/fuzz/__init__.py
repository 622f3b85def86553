"""The report of a fuzz run: as text, as JSON, as a page."""
