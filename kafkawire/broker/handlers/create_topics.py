"""CreateTopics: creates topics, or only validates them.

v0   the first
v1   request +validate_only; response +error_message
v2   response +throttle_time_ms
v3   no new fields │ throttled after the response
v4   no new fields │ -1 partitions or replicas: the broker's default
v5   response +topic_config_error_code +num_partitions +replication_factor +configs;
      flexible
v6   no new fields │ THROTTLING_QUOTA_EXCEEDED may be returned
v7   response +topic_id
"""

from __future__ import annotations

from .forwarding import error_response, handle

__all__ = ["error_response", "handle"]
