"""Merges the schemas of several releases into one timeline: every version that was ever released.

The layout of a version is that of the newest release that has it; what cannot be described
together is listed, never lost unseen.

    Release, ... (oldest first) --timeline--> Timeline { messages, releases, changes, unmerged }
    Timeline --files--> File, ...
"""

from __future__ import annotations
