"""The broker of a node: its logs and replicas, and what it and its controller exchange."""
