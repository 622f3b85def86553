"""Every golden vector: read, written and compared as values, by both codecs."""

from __future__ import annotations

from typing import Any, Final

import pytest

import kafkawire
from kafkawire import reference
from kafkawire.errors import DecodeError, EncodeError, InvalidText, InvalidValue, TrailingBytes
from kafkawire.messages import REGISTRY
from tests import vectors
from tests.vectors import NAMES, same, where

STRICTER: Final[dict[str, tuple[type[DecodeError], str]]] = {
    "trailing-byte": (
        TrailingBytes,
        "Kafka ignores what follows a body; here that is an error, or kept when lenient",
    ),
    "invalid UTF-8 in string": (
        InvalidText,
        "Kafka replaces it by U+FFFD and loses it; here it is an error, or kept when lenient",
    ),
}
"""Where a strict decode refuses on purpose what Kafka accepts: the error, and why."""

MORE_LENIENT: Final[dict[str, str]] = {
    "tag known only from a later version": (
        "Kafka refuses it; a lenient decode keeps the field as unknown, as early brokers sent it"
    ),
}
"""Where a lenient decode accepts on purpose what Kafka refuses, and why."""


def body(row: dict[str, Any]) -> bytes:
    return bytes.fromhex(row["hex"])


@pytest.mark.parametrize("name", NAMES)
def test_every_vector_is_read_written_and_equal(name: str) -> None:
    cls = REGISTRY.load(name)
    for row in vectors.by_message("messages").get(name, []):
        raw, version = body(row), row["version"]
        wanted, read = vectors.instance(row), cls.decode(raw, version)
        assert same(read, wanted), where(row)
        assert read.deviations is None, where(row)
        assert read.encode(version) == raw, where(row)
        assert wanted.encode(version) == raw, where(row)


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_agrees_on_every_vector(name: str) -> None:
    cls = REGISTRY.load(name)
    for row in vectors.by_message("messages").get(name, []):
        raw, version = body(row), row["version"]
        values = reference.decode(name, version, raw)
        assert same(values, reference.values_of(cls.decode(raw, version))), where(row)
        assert reference.encode(name, version, values) == raw, where(row)
        assert reference.encode(name, version, vectors.instance(row)) == raw, where(row)


def test_vectors_cover_the_registry() -> None:
    covered = {
        (row["message"], row["version"])
        for rows in vectors.by_message("messages").values()
        for row in rows
    }
    everything = {(i.name, v) for i in REGISTRY for v in range(i.first, i.last + 1)}
    assert len(everything) == 879
    assert covered <= everything
    assert everything - covered == NO_VECTOR


NO_VECTOR: Final = {
    ("AccessControlRecord", 0),
    ("QuotaRecord", 0),
    ("RemoveFeatureLevelRecord", 0),
}
"""Records that Kafka dropped before the release whose classes made the vectors."""


@pytest.mark.parametrize("file", ["negatives", "quirks"])
@pytest.mark.parametrize("lenient", [False, True], ids=["strict", "lenient"])
def test_verdicts_are_kafkas_but_for_those_listed(file: str, lenient: bool) -> None:
    for name, rows in vectors.by_message(file).items():
        for row in rows:
            title = row["where"] if file == "quirks" else row["kind"]
            error = vectors.verdict(name, row["version"], body(row), lenient=lenient)
            if title in STRICTER and not lenient:
                assert error is STRICTER[title][0], where(row)
                assert row["expect"] == "ok", where(row)
            elif title in MORE_LENIENT and lenient:
                assert error is None, where(row)
            else:
                assert (error is None) == (row["expect"] == "ok"), where(row)


@pytest.mark.parametrize("file", ["negatives", "quirks"])
@pytest.mark.parametrize("lenient", [False, True], ids=["strict", "lenient"])
def test_the_reference_gives_the_same_verdicts(file: str, lenient: bool) -> None:
    with vectors.fast_alone():
        for name, rows in vectors.by_message(file).items():
            for row in rows:
                fast = vectors.verdict(name, row["version"], body(row), lenient=lenient)
                slow = reference.parse(name, row["version"], body(row), lenient=lenient).error
                assert fast is (None if slow is None else type(slow)), where(row)


def test_every_listed_deviation_has_a_row() -> None:
    titles = {row["kind"] for rows in vectors.by_message("negatives").values() for row in rows}
    titles |= {row["where"] for rows in vectors.by_message("quirks").values() for row in rows}
    assert set(STRICTER) | set(MORE_LENIENT) <= titles


def test_quirks_hold_what_kafka_read_and_are_written_as_kafka_writes_them() -> None:
    compared = 0
    for name, rows in vectors.by_message("quirks").items():
        cls = REGISTRY.load(name)
        for row in rows:
            if row["expect"] != "ok" or row["where"] in STRICTER or "json" not in row:
                continue
            read = cls.decode(body(row), row["version"])
            assert same(read, vectors.instance(row)), where(row)
            assert read.encode(row["version"]).hex() == row["reencoded"], where(row)
            compared += 1
    assert compared >= 20


def test_a_tag_met_twice_is_read_and_not_written() -> None:
    twice = [
        row
        for row in vectors.by_message("quirks")["ApiVersionsRequest"]
        if row["where"] == "same unknown tag twice"
    ]
    message = REGISTRY.load("ApiVersionsRequest").decode(body(twice[0]), 3)
    with pytest.raises(InvalidValue, match=r"unknown_tags\[1\]: tag 100 is there twice"):
        message.encode(3)
    with vectors.fast_alone(), pytest.raises(EncodeError):
        message.encode(3)


def test_frames_hold_the_values_of_their_rows() -> None:
    for name, rows in vectors.by_message("frames").items():
        for row in rows:
            responded = (row["api_key"], row["version"]) if row["type"] == "response" else None
            frame = kafkawire.decode_frame(body(row), response_to=responded)
            assert same(frame.body, vectors.instance(row)), f"frame {where(row)}"
            assert type(frame.body).__name__ == name


# the framing of a record's key or value -> the type of its message, and the size of the prefix
PREFIXES: Final = {
    "metadata": ("metadata", 3),
    "coordinator-key": ("coordinator-key", 2),
    "coordinator-value": ("coordinator-value", 2),
    "version-prefixed": ("data", 2),
}


def test_log_records_are_read_behind_their_prefixes() -> None:
    for name, rows in vectors.by_message("log_records").items():
        info, cls = REGISTRY.get(name), REGISTRY.load(name)
        for row in rows:
            kind, size = PREFIXES[row["framing"]]
            raw = body(row)
            prefix = raw[:size]
            number = row["api_key"] if kind == "coordinator-key" else row["version"]
            if kind == "metadata":
                assert prefix == bytes([1, row["api_key"], row["version"]]), where(row)
            else:
                assert int.from_bytes(prefix, "big") == number, where(row)
            if kind not in ("data", "metadata"):
                assert info.type == kind, where(row)
            assert same(cls.decode(raw[size:], row["version"]), vectors.instance(row)), where(row)
