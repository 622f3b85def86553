"""What a node serves its clients with, besides its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ...broker.bounds import DEFAULT_BOUNDS, Bounds


@dataclass(frozen=True, slots=True)
class FrontOptions:
    """The options of a front.

    passwords: user -> password, for listeners with SASL. topics: name -> partitions,
    created as soon as there are enough brokers, unless they exist. bounds: limits for which Kafka
    has no key.
    """

    passwords: Mapping[str, str] = field(default_factory=dict)
    topics: Mapping[str, int] = field(default_factory=dict)
    bounds: Bounds = DEFAULT_BOUNDS


DEFAULT: Final = FrontOptions()
