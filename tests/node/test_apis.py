"""The APIs of controllers: every version gets its response."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from kafkawire import REGISTRY, ApiKey, ErrorCode, Message
from kafkawire.broker.apis import APIS, Handled, Listener, between_brokers, client_apis, served_on
from kafkawire.broker.handlers import CONTROLLER_HANDLERS, HANDLERS, Handlers, error_response
from kafkawire.broker.releases import LATEST, Offer, releases, with_zookeeper
from kafkawire.broker.request import Request
from kafkawire.messages.controller_registration_request import ControllerRegistrationRequest
from kafkawire.messages.controller_registration_response import ControllerRegistrationResponse
from kafkawire.node.front.apis import controller_apis
from kafkawire.protocol import encode_frame
from kafkawire.protocol.json_form import to_json

from ..real.requests import Known, filled
from .front_harness import NodeHarness


def every_version(apis: Offer) -> list[tuple[str, int]]:
    cases = []
    for key, versions in sorted(apis.items()):
        info = REGISTRY.request(key)
        assert info is not None
        cases += [(info.name, each) for each in range(versions.first, versions.last + 1)]
    return cases


def assert_responds(harness: NodeHarness, listener: str, name: str, version: int) -> None:
    """Send a request that is filled as for any broker; any error will do."""
    topic = harness.cluster.topics.get("t")
    assert topic is not None
    client = harness.client(listener=listener)
    client.send(filled(name, version, Known("t", topic_id=topic.topic_id, leader_epoch=0)), version)
    harness.wait(lambda: len(client.received) >= 4 or client.closed is not None)
    response = client.response()
    assert type(response).__name__ == name.replace("Request", "Response"), client.closed


@pytest.mark.parametrize(("name", "version"), every_version(controller_apis(LATEST).served))
def test_a_controller_responds(name: str, version: int) -> None:
    harness = NodeHarness(topics={"t": 1})  # a request may end its leadership
    assert_responds(harness, "CONTROLLER", name, version)


@pytest.mark.parametrize("handlers", [HANDLERS, CONTROLLER_HANDLERS], ids=["broker", "controller"])
def test_every_api_has_a_response_with_an_error(handlers: Handlers) -> None:
    for key in handlers:
        request, response = REGISTRY.request(key), REGISTRY.response(key)
        assert request is not None
        assert response is not None
        body = REGISTRY.load(request.name)()
        error = handlers[key].error_response(body, ErrorCode.NOT_CONTROLLER)
        assert isinstance(error, REGISTRY.load(response.name))


def empty(name: str, _version: int) -> Message:
    body: Message = REGISTRY.load(name)()
    return body


def filled_any(name: str, version: int) -> Message:
    return filled(name, version, Known("t"))


def broker_offers() -> Iterator[tuple[Handlers, Offer]]:
    """What nodes of any release serve, on listeners of brokers and of controllers."""
    for release in releases():
        yield HANDLERS, client_apis(release).served
        yield CONTROLLER_HANDLERS, controller_apis(release).served
    for release in with_zookeeper():
        yield HANDLERS, between_brokers(release)


ANY_VERSION: Final = sorted(
    {
        (handlers is CONTROLLER_HANDLERS, *case)
        for handlers, apis in broker_offers()
        for case in every_version(apis)
    }
)
NO_PLACE: Final = {("DescribeLogDirsRequest", version) for version in (0, 1, 2)}
"""Responses without a field for the error, as at Kafka; the code is at the top from v3 on."""


@pytest.mark.parametrize("body_of", [empty, filled_any])
def test_every_version_has_a_place_for_an_error(body_of: Callable[[str, int], Message]) -> None:
    """As a fault injects it; what has no elements in the request may have none in the response."""
    for on_controller, name, version in ANY_VERSION:
        handlers = CONTROLLER_HANDLERS if on_controller else HANDLERS
        key = ApiKey(REGISTRY.get(name).api_key or 0)
        request = Request(1, 1, 0, key, version, 0, None, "", body_of(name, version), 0.0)
        response = error_response(handlers, request, ErrorCode.UNKNOWN_SERVER_ERROR)
        assert encode_frame(response, version, 0), (name, version)
        if body_of is filled_any:
            values = json.dumps(to_json(response, version))
            has_error = 'rrorCode": -1' in values
            assert has_error == ((name, version) not in NO_PLACE), (name, version)


def test_a_controller_is_registered() -> None:
    harness = NodeHarness()
    request = ControllerRegistrationRequest(controller_id=7, incarnation_id=bytes(15) + b"7")
    client = harness.client(listener="CONTROLLER")
    response = client.exchange(request, 0, ControllerRegistrationResponse)
    assert response.error_code == ErrorCode.NONE
    harness.wait(lambda: 7 in harness.cluster.image.controllers)
    assert list(harness.cluster.image.controllers) == [7]


def test_controllers_and_brokers_serve_what_the_table_says() -> None:
    assert controller_apis(LATEST).served.keys() == served_on(Listener.CONTROLLER)
    assert ApiKey.PRODUCE not in controller_apis(LATEST).served


@pytest.mark.parametrize("release", releases())
def test_controllers_have_what_brokers_of_their_release_forward(release: str) -> None:
    brokers, controllers = client_apis(release).listed, controller_apis(release).served
    forwarded = [key for key in brokers if APIS[key].handled is Handled.CONTROLLER]
    assert forwarded
    for key in forwarded:
        assert brokers[key].first in controllers[key], key
        assert brokers[key].last in controllers[key], key
