"""Tracks the state of groups in a capture: classic and heartbeat-based protocols."""
