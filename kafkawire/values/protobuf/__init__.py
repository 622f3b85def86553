"""Protobuf: the text of .proto files, and values of their messages."""
