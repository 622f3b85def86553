"""Checksums: by their definition, by the package, by the processor; for every size and place."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkawire.errors import WireError
from kafkawire.records import castagnoli, checksum


def test_missing_checksum_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "crc32c", None)
    checksum.crc32c_function.cache_clear()
    with pytest.raises(WireError, match="needs the package crc32c"):
        checksum.crc32c_function()


def test_checksums() -> None:
    data = b"--123456789--"
    assert checksum.crc32c(data, 2, 11) == 0xE3069283
    assert checksum.crc32(data, 2, 11) == 0xCBF43926


def crc32c_by_bits(data: bytes) -> int:
    """Compute a CRC-32C by its definition."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@pytest.mark.parametrize(
    "size", [*range(20), 63, 64, 65, *range(250, 340, 7), 511, 512, 1000, 5000]
)
def test_crc32c_by_its_definition(size: int) -> None:
    data = bytes(number * number % 251 for number in range(size + 40))
    for start in (0, 1, 21):
        expected = crc32c_by_bits(data[start : start + size])
        assert checksum.crc32c(data, start, start + size) == expected
        before = crc32c_by_bits(data[:start])
        assert checksum.crc32c_after(before, data[start:]) == crc32c_by_bits(data)
        assert checksum.crc32c_function()(data[start : start + size]) == expected


def test_the_function_is_offered_where_it_may_be_called() -> None:
    assert (castagnoli.function is not None) == castagnoli.available()


@settings(max_examples=300)
@given(st.binary(max_size=2000), st.integers(0, 50))
def test_crc32c_is_the_packages(data: bytes, start: int) -> None:
    start = min(start, len(data))
    assert checksum.crc32c(data, start, len(data)) == checksum.crc32c_function()(data[start:])


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (2, 1), (0, 4)])
def test_crc32c_outside_of_the_data_is_refused(start: int, end: int) -> None:
    with pytest.raises(ValueError):
        castagnoli.crc32c(b"abc", start, end, 0)


def test_crc32c_uses_the_processor() -> None:
    import crc32c

    assert crc32c.hardware_based
