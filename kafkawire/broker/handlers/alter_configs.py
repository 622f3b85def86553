"""AlterConfigs: replaces all configs of a resource; absent keys return to their defaults.

v0   the first
v1   no new fields │ throttled after the response
v2   flexible
"""

from __future__ import annotations

from .forwarding import error_response, handle

__all__ = ["error_response", "handle"]
