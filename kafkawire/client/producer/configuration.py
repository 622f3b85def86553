"""A producer's configuration, under Kafka's names.

Settings that contradict each other are rejected, not adjusted: idempotence without acks=all
is not idempotent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ...records import Compression
from ...records.compression.codecs import CODEC_NAMES
from ..config import (
    CLIENT_KEYS,
    INT32,
    INT64,
    MILLISECONDS,
    Key,
    Setting,
    Values,
    backoff,
    boolean,
    integer,
    one_of,
    optional_text,
    seconds,
    text,
    whole,
)
from ..failures import ConfigurationError
from ..network.backoff import Backoff

ACKS: Final = {"0": 0, "1": 1, "-1": -1, "all": -1}
MOST_IN_FLIGHT_IN_ORDER: Final = 5
"""In-flight batches of a partition whose sequence numbers a broker tracks (KIP-679)."""


def acks(value: Setting) -> object:
    """Parse 0, 1 or all."""
    parsed = ACKS.get(str(value).strip().lower())
    if parsed is None or isinstance(value, bool):
        raise ValueError(f"expected one of 0, 1, all, got {value!r}")
    return parsed


PRODUCER_KEYS: Final[Mapping[str, Key]] = {
    **CLIENT_KEYS,
    "acks": Key(acks, -1, "acknowledgements required for delivery: 0, 1 or all"),
    "enable.idempotence": Key(boolean, None, "whether retries never duplicate records"),
    "compression.type": Key(one_of(*CODEC_NAMES), "none", "compression of batches"),
    "batch.size": Key(integer(0, INT32), 16_384, "maximum bytes of a batch, before compression"),
    "linger.ms": Key(MILLISECONDS, 5, "how long a batch waits for more records"),
    "buffer.memory": Key(integer(0, INT64), 33_554_432, "bytes of records without a result"),
    "max.block.ms": Key(MILLISECONDS, 60_000, "how long send() waits for memory or metadata"),
    "max.request.size": Key(
        integer(0, INT32), 1_048_576, "maximum bytes of a record and of a request"
    ),
    "retries": Key(integer(0, INT32), INT32, "maximum retries of a batch"),
    "delivery.timeout.ms": Key(MILLISECONDS, 120_000, "maximum time from send() to the result"),
    "transactional.id": Key(
        text, None, "identifies the producer across restarts, for transactions (KIP-98)"
    ),
    "transaction.timeout.ms": Key(
        integer(1, INT32), 60_000, "when the broker aborts a transaction that is still open"
    ),
    "partitioner.ignore.keys": Key(boolean, False, "choose the partition without the key"),
    "partitioner.adaptive.partitioning.enable": Key(boolean, True, "prefer faster partitions"),
}


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """Settings of a producer; sizes in bytes, times in seconds."""

    acks: int = -1
    idempotent: bool = True
    compression: Compression = Compression.NONE
    batch_size: int = 16_384
    linger_s: float = 0.005
    buffer_memory: int = 33_554_432
    max_block_s: float = 60.0
    max_request_size: int = 1_048_576
    retries: int = INT32
    request_timeout_s: float = 30.0
    delivery_timeout_s: float = 120.0
    max_in_flight: int = MOST_IN_FLIGHT_IN_ORDER
    retry: Backoff = Backoff(0.1, 1.0)  # noqa: RUF009
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000
    ignore_keys: bool = False
    adaptive: bool = True


def producer_settings(values: Values) -> ProducerSettings:
    """Make the settings from checked values; ConfigurationError if they contradict each other."""
    in_flight = whole(values, "max.in.flight.requests.per.connection")
    linger_s, timeout_s = seconds(values, "linger.ms"), seconds(values, "request.timeout.ms")
    delivery_s = seconds(values, "delivery.timeout.ms")
    if delivery_s < linger_s + timeout_s:
        raise ConfigurationError(
            "delivery.timeout.ms", "must be at least linger.ms + request.timeout.ms"
        )
    return ProducerSettings(
        acks=whole(values, "acks"),
        idempotent=_idempotent(values, in_flight),
        compression=Compression[str(values["compression.type"]).upper()],
        batch_size=whole(values, "batch.size"),
        linger_s=linger_s,
        buffer_memory=whole(values, "buffer.memory"),
        max_block_s=seconds(values, "max.block.ms"),
        max_request_size=whole(values, "max.request.size"),
        retries=whole(values, "retries"),
        request_timeout_s=timeout_s,
        delivery_timeout_s=delivery_s,
        max_in_flight=in_flight,
        retry=backoff(values, "retry"),
        transactional_id=optional_text(values, "transactional.id"),
        transaction_timeout_ms=whole(values, "transaction.timeout.ms"),
        ignore_keys=bool(values["partitioner.ignore.keys"]),
        adaptive=bool(values["partitioner.adaptive.partitioning.enable"]),
    )


def _idempotent(values: Values, in_flight: int) -> bool:
    """Return whether idempotence is on: by default, unless another setting rules it out."""
    conflicts = {
        "acks": whole(values, "acks") != -1,
        "max.in.flight.requests.per.connection": in_flight > MOST_IN_FLIGHT_IN_ORDER,
        "retries": whole(values, "retries") == 0,
    }
    transactional = values["transactional.id"] is not None
    enabled = values["enable.idempotence"]
    if transactional and enabled is False:
        raise ConfigurationError("enable.idempotence", "transactional.id requires it (KIP-98)")
    if enabled is None and not transactional:
        return not any(conflicts.values())
    for key, conflict in conflicts.items():
        if conflict and transactional:
            raise ConfigurationError(key, "incompatible with transactional.id (KIP-98)")
        if conflict and enabled:
            raise ConfigurationError(key, "incompatible with enable.idempotence (KIP-679)")
    return transactional or bool(enabled)
