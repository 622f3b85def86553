"""Values of fields: usual ones, with which a broker has something to do, and those at boundaries.

A broker waits no longer than fields with the names of `LIMITED` say, and creates no more.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ..messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from ..protocol.fields import Field
from ..protocol.versioned import encode_versioned
from ..reference.samples import TEXTS as SAMPLES

NODES: Final = (1, 1, 0)
INDEXES: Final = (0, 0, 0, 1)

NUMBERS: Final[Mapping[str, Sequence[int]]] = {
    "acks": (-1, 1, 0),
    "broker_ids": NODES,
    "committed_offset": (0, 1),
    "config_operation": (0, 1),
    "count": (2, 3),
    "current_leader_epoch": (-1, 0),
    "fetch_offset": (0, 1),
    "generation_id": (-1, 1),
    "generation_id_or_member_epoch": (-1, 0),
    "heartbeat_interval_ms": (1000,),
    "key_type": (0, 1, 2),
    "last_fetched_epoch": (-1, 0),
    "leader_epoch": (-1, 0),
    "log_start_offset": (-1, 0),
    "max_bytes": (1 << 20, 1),
    "max_records": (1, 500),
    "max_wait_ms": (0, 10),
    "member_epoch": (0, 0, 1),
    "min_bytes": (0, 1),
    "num_partitions": (1, 2, -1),
    "partition_index": INDEXES,
    "partition_indexes": INDEXES,
    "partition_max_bytes": (1 << 20, 1),
    "partitions": INDEXES,
    "pattern_type": (3, 1),
    "pattern_type_filter": (1, 3),
    "permission_type": (1, 3),
    "producer_epoch": (-1, 0),
    "producer_id": (-1, 1000),
    "rebalance_timeout_ms": (1000,),
    "replica_id": (-1,),
    "replicas": NODES,
    "replication_factor": (1, -1),
    "resource_type": (2,),
    "resource_type_filter": (1, 2),
    "session_epoch": (0, -1, 1),
    "session_timeout_ms": (6000, 10_000),
    "share_session_epoch": (0, -1, 1),
    "timeout_ms": (1000, 0),
    "timestamp": (-1, -2, -3, 0),
    "transaction_timeout_ms": (60_000,),
}
"""Field -> usual numbers; of another field its default, 0 or 1."""

LIMITED: Final[Mapping[str, Sequence[int]]] = {
    "count": (-2, -1, 0, 1, 3),
    "max_wait_ms": (-(1 << 31), -1, 1, 100),
    "max_wait_time_ms": (-(1 << 31), -1, 1, 100),
    "num_partitions": (-2, -1, 0, 1, 3),
    "rebalance_timeout_ms": (-(1 << 31), -1, 0, 1, 2000),
    "session_timeout_ms": (-(1 << 31), -1, 0, 1, 6000, (1 << 31) - 1),
}
"""Field -> all its numbers at boundaries, where others would make a broker wait or work."""

TEXTS: Final[Mapping[str, Sequence[str]]] = {
    "AlterableConfig.name": ("retention.ms", "cleanup.policy", "min.insync.replicas", "unknown"),
    "AlterableConfig.value": ("86400000", "compact", "1", "-1", "unknown"),
    "CreatableTopicConfig.name": ("retention.ms", "cleanup.policy", "unknown"),
    "CreatableTopicConfig.value": ("86400000", "compact", "delete", "unknown"),
    "EntityData.entity_type": ("user", "client-id", "ip"),
    "ComponentData.entity_type": ("user", "client-id", "ip"),
    "configuration_keys": ("retention.ms", "cleanup.policy"),
    "group_instance_id": ("instance",),
    "member_id": ("", "member"),
    "path": ("/no-such-directory",),
    "protocol_type": ("consumer",),
    "server_assignor": ("uniform", "range"),
    "states_filter": ("Stable", "Empty"),
    "subscribed_topic_regex": ("x.*", ""),
    "types_filter": ("classic", "consumer"),
}
"""`Struct.field` or field -> usual texts; of another field one of `samples`, or its own name."""

UNUSUAL_TEXTS: Final = (
    "",
    " ",
    "\0",
    "é" * 50,
    "\N{PILE OF POO}",
    "x" * 300,
    "x" * 0x7FFF,
    "-1",
    "[(*",
    "%s%n",
    "\r\n",
)
UNUSUAL_BYTES: Final = (b"", b"\0", b"\xff" * 40, bytes(16), b"\0\3\0\0\0\0", b"\x7f\xff\xff\xff")
UNUSUAL_FLOATS: Final = (0.0, -0.0, -1.0, math.inf, -math.inf, math.nan, 1e308, 5e-324)
BITS: Final[Mapping[str, int]] = {
    "int8": 8,
    "int16": 16,
    "uint16": 16,
    "int32": 32,
    "uint32": 32,
    "int64": 64,
}
LARGEST_BYTES: Final = 60


def usual_number(field: Field, default: object, rng: random.Random) -> int:
    """Draw a number that says something to most brokers."""
    numbers = NUMBERS.get(field.attribute)
    if numbers is not None:
        return rng.choice(numbers)
    first = default if isinstance(default, int) else 0
    return rng.choice((first, first, 0, 1))


def unusual_number(field: Field, rng: random.Random) -> int:
    """Draw a number at the boundaries of its type, or any."""
    limited = LIMITED.get(field.attribute)
    if limited is not None:
        return rng.choice(limited)
    bits = BITS[field.element]
    signed = field.element[0] == "i"
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return rng.choice((low, low + 1, max(low, -1), 0, 1, 2, rng.randint(low, high), high - 1, high))


def usual_text(owner: str, field: Field, rng: random.Random) -> str:
    """Draw a text that a field may have. owner: the name of the field's struct."""
    texts = TEXTS.get(f"{owner}.{field.attribute}") or TEXTS.get(field.attribute)
    name = field.attribute.rstrip("_")
    return rng.choice(texts) if texts is not None else SAMPLES.get(name, name.replace("_", "-"))


def usual_bytes(topic: str, rng: random.Random) -> bytes:
    """Draw bytes: none, or a subscription to a topic."""
    return rng.choice((b"", encode_versioned(ConsumerProtocolSubscription(topics=[topic]), 3)))


def unusual_bytes(rng: random.Random) -> bytes:
    """Draw bytes that most formats do not allow."""
    return rng.choice((*UNUSUAL_BYTES, rng.randbytes(rng.randint(1, LARGEST_BYTES))))


def _bool(rng: random.Random) -> bool:
    return rng.random() < 0.5


USUAL: Final[Mapping[str, Callable[[random.Random], Any]]] = {
    "bool": _bool,
    "float64": lambda rng: rng.choice((0.0, 1.0, 1e6)),
}
UNUSUAL: Final[Mapping[str, Callable[[random.Random], Any]]] = {
    "bool": _bool,
    "float64": lambda rng: rng.choice(UNUSUAL_FLOATS),
    "uuid": lambda rng: rng.choice((bytes(16), b"\xff" * 16, rng.randbytes(16))),
    "bytes": unusual_bytes,
    "string": lambda rng: rng.choice(UNUSUAL_TEXTS),
}
"""Type -> what draws one of its values, where neither name nor entity matters."""
