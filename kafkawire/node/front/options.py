"""What a node serves its clients with, besides its settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ...broker.context import no_time

if TYPE_CHECKING:
    from ...broker.configs.stores import Stores
    from ...broker.control_state import Ensemble
    from ...broker.security.signed_tokens import KeySource


@dataclass(frozen=True, slots=True)
class FrontOptions:
    """The options of a front.

    passwords: user -> password, for listeners with SASL. topics: name -> partitions,
    created as soon as there are enough brokers, unless they exist. load_seconds: how long a new
    group coordinator loads. reports: whether requests are reported, with `Report`. ensemble: what
    brokers before 2.8 read in ZooKeeper; None without it. clock: returns the seconds that the
    thread has worked, for the quotas of request time. key_sources: of signed tokens that servers
    have the keys of, by listener. stores: of certificates, by node.
    """

    passwords: Mapping[str, str] = field(default_factory=dict)
    topics: Mapping[str, int] = field(default_factory=dict)
    load_seconds: float = 0.0
    reports: bool = True
    ensemble: Ensemble | None = None
    clock: Callable[[], float] = no_time
    key_sources: Mapping[str, KeySource] = field(default_factory=dict)
    stores: Mapping[int, Stores] = field(default_factory=dict)


DEFAULT: Final = FrontOptions()
