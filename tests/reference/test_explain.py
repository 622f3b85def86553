"""Explanations: every byte in a row, in order, whatever the bytes; the bad one marked."""

from __future__ import annotations

import random

import pytest

from kafkawire import encode_frame, from_json
from kafkawire.messages import REGISTRY
from kafkawire.reference import Explanation, as_json, explain, explain_frame, verify
from tests import vectors
from tests.vectors import NAMES, is_sampled, where


def covered(explanation: Explanation, data: bytes) -> bool:
    """Check that the rows with bytes are the data, each byte once and at its offset."""
    at = 0
    for row in explanation.rows:
        if row.raw and row.offset != at:
            return False
        at += len(row.raw)
    return b"".join(row.raw for row in explanation.rows) == data


@pytest.mark.parametrize("name", NAMES)
def test_every_byte_has_a_row(name: str) -> None:
    draw = random.Random(name)
    for row in vectors.by_message("messages").get(name, []):
        raw, version = bytes.fromhex(row["hex"]), row["version"]
        if row["kind"] not in ("full", "tags") or len(raw) > 1000:
            continue
        whole = explain(name, version, raw)
        assert whole.error is None, where(row)
        assert covered(whole, raw), where(row)
        assert all(r.bad is None and not r.notes for r in whole.rows), where(row)
        damaged = bytearray(raw)[: draw.randrange(len(raw) + 1)]
        if damaged:
            damaged[draw.randrange(len(damaged))] ^= 0xFF
        broken = explain(name, version, bytes(damaged))
        assert covered(broken, bytes(damaged)), f"{damaged.hex()} {where(row)}"
        marked = [r for r in broken.rows if r.bad is not None]
        assert len(marked) == (broken.error is not None), f"{damaged.hex()} {where(row)}"
        if broken.error is not None:
            assert marked[0].offset + (marked[0].bad or 0) == broken.error.offset
            assert str(broken.error.reason) in str(broken)


@pytest.mark.parametrize("name", NAMES)
def test_any_bytes_are_explained_in_every_version(name: str) -> None:
    info = REGISTRY.get(name)
    for version in range(info.first, info.last + 1):
        if is_sampled("explain", name, version):
            explained(name, version)


def explained(name: str, version: int) -> None:
    """Explain bytes of any kind, and compare with the verdict on them."""
    default = REGISTRY.load(name)().encode(version)
    for data in (b"", b"\xff", default + b"\x00", default[:-1]):
        explanation = explain(name, version, data)
        assert covered(explanation, data), data.hex()
        assert str(explanation).split()[1] == name
        verdict = verify(name, version, data)
        assert (explanation.error is None) or not verdict, data.hex()
        tree = as_json(explanation)
        assert tree["nodes"][0]["name"] == name
        assert ("error" in tree) == (explanation.error is not None)


def test_frames_are_explained_whole() -> None:
    for rows in vectors.by_message("frames").values():
        for row in rows[::4]:
            raw = bytes.fromhex(row["hex"])
            responded = (row["api_key"], row["version"]) if row["type"] == "response" else None
            explanation = explain_frame(raw, responded)
            assert explanation.error is None, where(row)
            assert covered(explanation, raw), where(row)
            assert [tree.name for tree in explanation.trees][0::2] == ["size", row["message"]]


FRAME = encode_frame(from_json("HeartbeatRequest", 4, {"groupId": "g", "memberId": "m"}), 4, 7)


def test_a_frame_cut_anywhere_is_explained_as_far_as_it_goes() -> None:
    for cut in range(len(FRAME)):
        explanation = explain_frame(FRAME[:cut])
        assert explanation.error is not None, cut
        assert explanation.error.offset == cut
        assert covered(explanation, FRAME[:cut]), cut


BROKEN_FRAMES = [
    (b"\xff\xff\xff\xff", None, "a frame of -1 bytes"),
    (bytes.fromhex("0000000a7fff000100000001ffff"), None, "unknown API key 32767"),
    (
        bytes.fromhex("0000000b0003270f00000001ffff00"),
        None,
        "MetadataRequest has versions 0-13, not",
    ),
    (bytes.fromhex("0000000400000001"), (32767, 0), "unknown API key 32767"),
    (FRAME + b"\x00", None, "1 byte after the last field"),
]


@pytest.mark.parametrize(
    ("data", "responded", "said"), BROKEN_FRAMES, ids=[said for *_, said in BROKEN_FRAMES]
)
def test_what_is_wrong_with_a_frame_is_said_and_its_bytes_shown(
    data: bytes, responded: tuple[int, int] | None, said: str
) -> None:
    explanation = explain_frame(data, responded)
    assert explanation.error is not None
    assert said in str(explanation)
    assert covered(explanation, data)


def test_a_size_that_is_not_the_frames_is_noted() -> None:
    assert "1 byte after the frame" in str(explain_frame(FRAME + b"\x00"))


def test_api_versions_falls_back_to_its_oldest_body() -> None:
    body = bytes.fromhex("00000001002300000001001200000003")
    frame = len(body).to_bytes(4, "big") + body
    explanation = explain_frame(frame, (18, 3))
    assert explanation.error is None
    assert "version 0" in explanation.rows[3].value


def test_the_layout_is_stable() -> None:
    assert str(explain("MetadataRequest", 1, bytes.fromhex("00000001000474657374"))) == (
        "0               MetadataRequest                                   version 1\n"
        "0  00 00 00 01    topics         nullable []MetadataRequestTopic  1 element\n"
        "4                   [0]          MetadataRequestTopic\n"
        "4  00 04              name       string                           4 bytes\n"
        '6  74 65 73 74                   UTF-8                            "test"'
    )


def test_long_bytes_are_elided_and_odd_text_is_escaped() -> None:
    data = bytes.fromhex("0000000100ff") + b"\x1b[31m" + b"x" * 250
    text = str(explain("MetadataRequest", 1, data))
    assert "1b 5b 33 31 6d 78 78 78 78 78 78 78 … 243 more" in text
    assert "\\u001b[31m" in text
    assert "\x1b" not in text
