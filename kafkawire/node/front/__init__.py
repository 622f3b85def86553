"""The clients of a node: their connections and requests, on the machines of the node.

What clients of a cluster in memory see they see here too; the handlers are the same.
"""
