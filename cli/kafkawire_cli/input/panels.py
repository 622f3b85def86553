"""Headings of options in the help of a verb: what the options are for."""

from __future__ import annotations

from enum import StrEnum


class Panel(StrEnum):
    """A heading; options without one are under `Options`."""

    CLUSTER = "Cluster"
    CAPTURES = "Captures"
    OUTPUT = "Output"
    TABLES = "Tables"
    BARE = "Bare messages"
    CHANGES = "Changes"
    OFFSETS = "Committed offsets"
    RECORDS = "Records"
    FRAME = "Frame"
    NODE = "One node with files"
    DIAGNOSIS = "Diagnosis"
    WATCH = "Captures that arrive"
