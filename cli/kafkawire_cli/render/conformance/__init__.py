"""The results of conformance checks: as text, as JSON, as a page."""
