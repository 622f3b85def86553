"""Ids of clusters and topics, which people type as arguments of commands."""

from __future__ import annotations

import random

from kafkawire.net.brokers.shell import random_uuid
from kafkawire.protocol.json_form import uuid_text


class Prepared(random.Random):
    """Draws prepared numbers."""

    def __init__(self, numbers: list[int]) -> None:
        super().__init__(0)
        self.numbers = numbers

    def getrandbits(self, k: int, /) -> int:
        assert k == 128
        return self.numbers.pop(0)


def test_the_text_of_a_random_uuid_does_not_begin_with_a_dash() -> None:
    option = 0b111110 << 122
    assert uuid_text(option.to_bytes(16, "big")).startswith("-")
    rng = Prepared([option, option + 1, 7])
    assert random_uuid(rng)[-1] == 7
    assert not rng.numbers
