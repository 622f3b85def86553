"""Embedded payloads: what assignors keep in a subscription's user data."""

from __future__ import annotations

import pytest

from kafkawire.messages.subscription_info_data import SubscriptionInfoData
from kafkawire.primitives import Message
from kafkawire.protocol.payload import Payload
from kafkawire.protocol.sticky import (
    CooperativeStickyUserData,
    StickyTopicPartitions,
    StickyUserData,
)
from tests.protocol.embedded_vectors import STICKY_V0, STICKY_V1, subscribe


@pytest.mark.parametrize(
    ("name", "data", "version", "value"),
    [
        (
            "sticky",
            STICKY_V0,
            0,
            StickyUserData(
                previous_assignment=[StickyTopicPartitions(topic="orders", partitions=[0])]
            ),
        ),
        (
            "sticky",
            STICKY_V1,
            1,
            StickyUserData(
                previous_assignment=[StickyTopicPartitions(topic="orders", partitions=[0])],
                generation=9,
            ),
        ),
        ("cooperative-sticky", b"\0\0\0\5", 0, CooperativeStickyUserData(generation=5)),
        ("cooperative-sticky", b"\0\0\0\0\0\0\0\5", 1, StickyUserData(generation=5)),
    ],
)
def test_sticky_user_data(name: str, data: bytes, version: int, value: Message) -> None:
    inner = subscribe(data, name).inner
    assert inner == Payload(
        "protocols[0].metadata.user_data", type(value).__name__, version, version, value
    )


def test_streams_user_data() -> None:
    info = SubscriptionInfoData(
        version=11, latest_supported_version=11, process_id=bytes(range(16)), user_end_point=b"a:1"
    )
    inner = subscribe(info.encode(11), "stream").inner
    assert inner is not None
    assert (inner.kind, inner.version, inner.value) == ("SubscriptionInfoData", 11, info)
    newer = subscribe(b"\0\0\0\x0c\0\0\0\x0c", "stream").inner
    assert newer is not None
    assert (newer.version, newer.value) == (12, None)
    assert newer.error == "SubscriptionInfoData has versions 1-11, not 12"


@pytest.mark.parametrize(
    ("name", "data"), [("range", STICKY_V1), ("sticky", b""), ("sticky", None)]
)
def test_user_data_that_is_not_known(name: str, data: bytes | None) -> None:
    payload = subscribe(data, name)
    assert (payload.error, payload.inner) == (None, None)


def test_bad_user_data_leaves_the_subscription_readable() -> None:
    payload = subscribe(STICKY_V1[:-2], "sticky")
    assert payload.value is not None
    assert payload.inner is not None
    assert payload.inner.value is None
    assert payload.inner.error == ("StickyUserData: the data ends inside the message (at byte 22)")


@pytest.mark.parametrize(
    ("name", "data", "ends"),
    [
        ("sticky", STICKY_V1, {len(STICKY_V0)}),
        ("cooperative-sticky", STICKY_V1, {4, len(STICKY_V0)}),
    ],
)
def test_truncated_sticky_user_data(name: str, data: bytes, ends: set[int]) -> None:
    for length in range(1, len(data)):
        inner = subscribe(data[:length], name).inner
        assert inner is not None
        assert (inner.error is None) == (length in ends), length
