"""The configuration of a share consumer, with Kafka's keys and defaults.

As in `client.config`: every key is in a table, with its parser, default and description.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final

from ...configs import GROUP_CONFIGS
from ..config import CLIENT_KEYS, Key, Values, one_of, optional_text, seconds, text, whole
from ..consumer.configuration import CONSUMER_KEYS


class AcknowledgementMode(Enum):
    """How delivered records are acknowledged (`share.acknowledgement.mode`)."""

    IMPLICIT = "implicit"
    """The next poll or commit accepts them."""
    EXPLICIT = "explicit"
    """The user acknowledges each, before the next poll."""


class AcquireMode(IntEnum):
    """How strictly `max.poll.records` limits what a fetch acquires (KIP-1206)."""

    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1


@dataclass(frozen=True, slots=True)
class ShareConsumerConfig:
    """A share consumer's configuration; seconds here, milliseconds in Kafka's keys."""

    group_id: str
    client_rack: str | None = None
    acknowledgement_mode: AcknowledgementMode = AcknowledgementMode.IMPLICIT
    acquire_mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED
    max_poll_interval_s: float = 300.0
    max_poll_records: int = 500
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 52_428_800
    fetch_max_wait_s: float = 0.5
    check_crcs: bool = True
    request_timeout_s: float = 30.0
    default_api_timeout_s: float = 60.0
    retry_backoff_s: float = 0.1
    retry_backoff_max_s: float = 1.0

    @property
    def explicit(self) -> bool:
        """Whether the user acknowledges each record."""
        return self.acknowledgement_mode is AcknowledgementMode.EXPLICIT


SHARED_KEYS: Final = (
    "client.rack",
    "max.poll.interval.ms",
    "max.poll.records",
    "fetch.min.bytes",
    "fetch.max.wait.ms",
    "fetch.max.bytes",
    "check.crcs",
    "default.api.timeout.ms",
)
"""The settings that a share consumer has in common with a consumer."""

SHARE_CONSUMER_KEYS: Final[Mapping[str, Key]] = {
    **CLIENT_KEYS,
    "group.id": Key(text, None, "the share group", required=True),
    "share.acknowledgement.mode": Key(
        one_of(*(each.value for each in AcknowledgementMode)),
        AcknowledgementMode.IMPLICIT.value,
        "implicit: the next poll or commit accepts records; explicit: the user acknowledges each",
    ),
    "share.acquire.mode": Key(
        one_of(*(each.name.lower() for each in AcquireMode)),
        AcquireMode.BATCH_OPTIMIZED.name.lower(),
        "batch_optimized: whole batches, also beyond max.poll.records; record_limit: never more",
    ),
    **{name: CONSUMER_KEYS[name] for name in SHARED_KEYS},
}
"""The settings of a share consumer."""

KEYS_OF_GROUPS: Final[Mapping[str, str]] = {
    spelling: f"share groups have {key}, a configuration of the group, which "
    "Admin.alter_group_config sets"
    for key in sorted(GROUP_CONFIGS)
    if key.startswith("share.")
    for spelling in (key, key.removeprefix("share."))
    if spelling not in SHARE_CONSUMER_KEYS
}
"""What the error says of keys that are configurations of the group, with or without prefix."""


def share_consumer_config(values: Values) -> ShareConsumerConfig:
    """Return the configuration of checked values (`read_config(SHARE_CONSUMER_KEYS, ...)`)."""
    return ShareConsumerConfig(
        group_id=str(values["group.id"]),
        client_rack=optional_text(values, "client.rack"),
        acknowledgement_mode=AcknowledgementMode(values["share.acknowledgement.mode"]),
        acquire_mode=AcquireMode[str(values["share.acquire.mode"]).upper()],
        max_poll_interval_s=seconds(values, "max.poll.interval.ms"),
        max_poll_records=whole(values, "max.poll.records"),
        fetch_min_bytes=whole(values, "fetch.min.bytes"),
        fetch_max_bytes=whole(values, "fetch.max.bytes"),
        fetch_max_wait_s=seconds(values, "fetch.max.wait.ms"),
        check_crcs=values["check.crcs"] is True,
        request_timeout_s=seconds(values, "request.timeout.ms"),
        default_api_timeout_s=seconds(values, "default.api.timeout.ms"),
        retry_backoff_s=seconds(values, "retry.backoff.ms"),
        retry_backoff_max_s=seconds(values, "retry.backoff.max.ms"),
    )
