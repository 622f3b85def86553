"""Frames: the stream of one direction, protocol detection, headers and bodies decoded."""
