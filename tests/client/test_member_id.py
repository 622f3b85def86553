"""The ids of members that name themselves are UUIDs of version 4 as Java's client makes them."""

from __future__ import annotations

from random import Random
from uuid import UUID

import pytest

from kafkawire.client.member_id import new_member_id
from kafkawire.protocol.json_form import uuid_bytes


def test_an_id_is_a_random_uuid_without_a_dash_at_its_start() -> None:
    rng = Random(5).random
    ids = [new_member_id(rng) for _ in range(2_000)]
    assert len(set(ids)) == len(ids)
    assert {each[0] for each in ids} >= set("A_9")
    for each in ids:
        assert not each.startswith("-")
        assert UUID(bytes=uuid_bytes(each)).version == 4


@pytest.mark.parametrize("number", [0.0, 0.97, 0.9999999])
def test_numbers_that_do_not_vary_make_an_id(number: float) -> None:
    assert not new_member_id(lambda: number).startswith("-")
