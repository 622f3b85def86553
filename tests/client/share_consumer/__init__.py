"""The share consumer: its tables, and its scenarios with a test as coordinator and leader."""
