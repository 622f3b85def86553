"""The codec: compared with other implementations, message by message."""
