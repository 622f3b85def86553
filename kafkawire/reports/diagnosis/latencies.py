"""The latencies of what rules compare: an API at a broker, or a partition."""

from __future__ import annotations

from ..quantiles import Quantiles
from .finding import Occurrences


class Latencies:
    """The latencies of an API at a broker, or of requests with a partition."""

    __slots__ = ("latency", "seen")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.latency = Quantiles()
