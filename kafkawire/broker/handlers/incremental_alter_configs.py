"""IncrementalAlterConfigs: sets, deletes, appends to and subtracts from values (KIP-339).

v0   the first
v1   flexible
"""

from __future__ import annotations

from .forwarding import error_response, handle

__all__ = ["error_response", "handle"]
