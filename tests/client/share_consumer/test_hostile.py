"""Responses with nonsense in them: the machine goes on, and its work stays bounded."""

from __future__ import annotations

from random import Random

import pytest

from kafkawire.client.consumer.events import Close, Closed, Poll, StopPolling
from kafkawire.client.requests import Reason, SendRequest
from kafkawire.client.share_consumer import AcknowledgementMode, AcknowledgeType, events
from kafkawire.errors import EncodeError, LocalProtocolError
from kafkawire.messages.share_acknowledge_response import ShareAcknowledgeResponse
from kafkawire.primitives import Message
from tests.broker.requests import varied
from tests.fuzzing import replayable, seeds

from .scripted import ACQUIRE, HEARTBEAT, Scripted, acquired, fetch_response, heartbeat, partition

STEPS = 120
MOST = 40 * STEPS
"""Requests in that time: each step is a second, and a backoff of at least 0.05 s."""


def response(request: SendRequest, rng: Random) -> Message:
    """Return a response as it may be, or one with nonsense in its fields."""
    good: Message = ShareAcknowledgeResponse()
    if request.api is HEARTBEAT:
        good = heartbeat(rng.randrange(3), *rng.choice([(), (0,), (0, 1)]))
    elif request.api is ACQUIRE:
        first = rng.randrange(50)
        data = partition(first, first + rng.randrange(3))
        if rng.random() < 0.2:
            data.acquired_records = [acquired(rng.randrange(60), rng.choice((59, 2**62)))]
        good = fetch_response(data)
    if rng.random() < 0.5:
        return good
    try:
        return varied(good, request.body.highest, rng)
    except EncodeError:
        return good


def use(it: Scripted, rng: Random) -> None:
    """Do what a user may do next."""
    choices: list[events.UserEvent] = [Poll(), StopPolling(), events.Commit(object(), 5.0)]
    event = rng.choice(choices)
    for record in it.delivered[-5:] if rng.random() < 0.7 else []:
        kind = rng.choice(list(AcknowledgeType))
        try:
            it.handle(events.Acknowledge(record[:2], record.offset, kind))  # type: ignore[arg-type]
        except LocalProtocolError:
            continue
    try:
        it.handle(event)
    except LocalProtocolError:
        return


@pytest.mark.fuzz
@pytest.mark.parametrize("mode", AcknowledgementMode)
@pytest.mark.parametrize("seed", seeds(20))
def test_a_member_survives_any_response(seed: int, mode: AcknowledgementMode) -> None:
    rng = Random(seed)
    with replayable(seed):
        it = Scripted(mode)
        it.handle(events.Subscribe(("orders",)))
        handled = 0
        for _ in range(STEPS):
            use(it, rng)
            for _ in range(10):
                if not it.requests:
                    break
                request = it.requests.pop(rng.randrange(len(it.requests)))
                handled += 1
                if rng.random() < 0.1:
                    it.fail(request, rng.choice([Reason.DISCONNECTED, Reason.TIMED_OUT]))
                else:
                    it.respond(request, response(request, rng))
            it.pass_time(1.0)
        assert 0 < handled < MOST
        it.handle(Close(5.0))
        it.pass_time(5.1)
        assert it.kinds(Closed)
