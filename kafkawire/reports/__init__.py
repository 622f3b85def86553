"""Computes reports about a capture: one collector per report, all in one pass.

The memory of a collector grows with the number of clients, topics or groups, never with the
length of the capture.
"""
