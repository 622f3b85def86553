"""Tests of `kafkawire.raft`."""
