"""What a node serves its clients with, besides its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class FrontOptions:
    """The options of a front.

    passwords: user -> password, for listeners with SASL. topics: name -> partitions,
    created as soon as there are enough brokers, unless they exist. load_seconds: how long a new
    group coordinator loads.
    """

    passwords: Mapping[str, str] = field(default_factory=dict)
    topics: Mapping[str, int] = field(default_factory=dict)
    load_seconds: float = 0.0


DEFAULT: Final = FrontOptions()
