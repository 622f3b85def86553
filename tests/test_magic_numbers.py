"""Formats are recognised in one place."""

from __future__ import annotations

import ast

import pytest

from kafkawire import magic_numbers
from kafkawire.magic_numbers import is_gzip, is_pcap, is_pcapng, is_skippable, is_zstd
from kafkawire_cli.input.inputs import is_capture
from tests.conftest import ROOT

NUMBERS = {value for value in vars(magic_numbers).values() if type(value) in (bytes, int) and value}
"""Magic numbers as they are written; `kafkawire.magic_numbers` holds all of them."""


def test_no_other_module_has_a_magic_number() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in ("kafkawire", "cli")
        for path in (ROOT / folder).rglob("*.py")
        if path.parent.name != "messages"
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Constant)
        if type(node.value) in (bytes, int) and node.value in NUMBERS
    }
    assert found == {"kafkawire/magic_numbers.py"}


@pytest.mark.parametrize("order", ["big", "little"])
def test_pcap_in_both_byte_orders(order: str) -> None:
    assert is_pcap(magic_numbers.PCAP_NANOSECONDS.to_bytes(4, order) + b"\2")  # type: ignore[arg-type]
    assert not is_pcap(magic_numbers.PCAPNG)


def test_skippable_frames_have_any_last_four_bits() -> None:
    for bits in range(16):
        head = (magic_numbers.SKIPPABLE | bits).to_bytes(4, "little")
        assert is_skippable(head)
        assert is_zstd(head)
        assert is_capture(head)  # pzstd writes one first
    assert not is_skippable(magic_numbers.LZ4)


def test_heads_that_are_too_short() -> None:
    for recognises in (is_gzip, is_zstd, is_skippable, is_pcap, is_pcapng):
        assert not recognises(b"")
        assert not recognises(b"\x1f")
