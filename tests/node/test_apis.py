"""The APIs of controllers: every version gets its response."""

from __future__ import annotations

import pytest

from kafkawire import REGISTRY, ApiKey, ErrorCode
from kafkawire.broker.apis import APIS, Handled, Listener, client_apis, served_on
from kafkawire.broker.handlers import CONTROLLER_HANDLERS, HANDLERS, Handlers
from kafkawire.broker.releases import LATEST, Offer, releases
from kafkawire.messages.controller_registration_request import ControllerRegistrationRequest
from kafkawire.messages.controller_registration_response import ControllerRegistrationResponse
from kafkawire.node.front.apis import controller_apis

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
