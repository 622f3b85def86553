"""What is counted while a capture is read: one tally a question, all of them in one pass.

Law: what a tally keeps grows with what it tells of (clients, topics, groups), never with the length
of the capture.
"""
