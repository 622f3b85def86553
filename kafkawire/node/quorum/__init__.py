"""The metadata quorum of a node: the replica of its log, and the controller beside it."""
