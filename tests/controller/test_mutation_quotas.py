"""What changes of topics cost: the client of the request, and nobody else (KIP-599)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

from kafkawire import ErrorCode
from kafkawire.controller.operations.change_topics import charged
from kafkawire.controller.operations.create_topics import create_topics
from kafkawire.messages import alter_client_quotas_request as quotas
from kafkawire.messages.alter_client_quotas_response import AlterClientQuotasResponse
from kafkawire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest

from .harness import Harness

E = ErrorCode
BURST: Final = 11
"""Partitions that are created at once by a client with one per second."""


def limited() -> Harness:
    """A controller with a broker, and a quota that each client id has for itself."""
    harness = Harness()
    harness.start(1)
    op = quotas.OpData(key="controller_mutation_rate", value=1.0, remove=False)
    entity = quotas.EntityData(entity_type="client-id", entity_name=None)
    entry = quotas.EntryData(entity=[entity], ops=[op])
    request = quotas.AlterClientQuotasRequest(entries=[entry])
    [result] = harness.exchange(request, AlterClientQuotasResponse).entries
    assert result.error_code == E.NONE
    return harness


def creation(*topics: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[
            CreatableTopic(name=name, num_partitions=BURST + 1, replication_factor=1)
            for name in topics
        ]
    )


def finished(work: Generator[None, None, Any]) -> list[int]:
    """Carry out what is left of a request; return the error of each topic."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            return [each.error_code for each in done.value.topics]


def test_a_request_is_charged_alone_though_another_one_has_begun() -> None:
    harness = limited()
    state = harness.controller._state
    assert state is not None
    work = charged(state, creation("a", "b"), 7, ("alice", "app"), 0.0)
    next(work)
    assert finished(create_topics(state, creation("c", "d"), 7, 0.0)) == [E.NONE, E.NONE]
    other = charged(state, creation("e", "f"), 7, ("alice", "other"), 0.0)
    assert finished(other) == [E.NONE, E.THROTTLING_QUOTA_EXCEEDED]
    assert finished(work) == [E.NONE, E.THROTTLING_QUOTA_EXCEEDED]
