"""The files of a segment: batches, and what finds them by offset, time and transaction."""
