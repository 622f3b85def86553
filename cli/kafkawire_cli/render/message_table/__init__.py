"""The table of messages of `kafkawire decode --format table`."""
