"""DeleteTopics: deletes topics by name or by id.

v0   the first
v1   response +throttle_time_ms
v2   no new fields │ throttled after the response
v3   no new fields │ TOPIC_DELETION_DISABLED may be returned
v4   flexible
v5   response +error_message
v6   request +topics -topic_names; response +topic_id
"""

from __future__ import annotations

from .forwarding import error_response, handle

__all__ = ["error_response", "handle"]
