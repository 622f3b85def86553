"""CreatePartitions: adds partitions to topics.

v0   the first
v1   no new fields │ throttled after the response
v2   flexible
v3   no new fields │ THROTTLING_QUOTA_EXCEEDED may be returned
"""

from __future__ import annotations

from .forwarding import error_response, handle

__all__ = ["error_response", "handle"]
