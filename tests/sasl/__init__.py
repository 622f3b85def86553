"""Tests of kafkawire.sasl."""
