"""Tests of the log directories of a broker."""
