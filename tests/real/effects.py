"""Waits until a change of configuration is in effect at a broker.

A broker of KRaft responds to a change once its controller has committed it, describes it once it
has read it, and acts on it a little later, a quarter of a second on a slow machine. It acts on
changes in order, and describes its own configs as those it acts on.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final

from kafkawire.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kafkawire.messages.describe_configs_response import DescribeConfigsResponse
from kafkawire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkawire.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kafkawire.messages.metadata_request import MetadataRequest
from kafkawire.messages.metadata_response import MetadataResponse
from tests.interop.implementations import until

from .wire import Wire

BROKER: Final = 4
HARMLESS: Final = "max.connections"
"""A config of all brokers, far from its limit here."""
LIMITS: Final = count(1_000_000)


def wait_until_in_effect(wire: Wire) -> None:
    """Wait until the broker acts on every change of configuration before this call.

    The first change below may be read together with those before; the second is read after it.
    """
    node = wire.exchange(MetadataRequest(topics=[]), 12, MetadataResponse).brokers[0].node_id
    for value in (str(next(LIMITS)), str(next(LIMITS))):
        _change(wire, value)
        until(_acts_on(wire, node, value))


def _change(wire: Wire, value: str) -> None:
    resource = AlterConfigsResource(
        resource_type=BROKER, configs=[AlterableConfig(name=HARMLESS, value=value)]
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    response = wire.exchange(request, 1, IncrementalAlterConfigsResponse)
    assert response.responses[0].error_code == 0


def _acts_on(wire: Wire, node: int, value: str) -> Callable[[], bool]:
    resource = DescribeConfigsResource(
        resource_type=BROKER, resource_name=str(node), configuration_keys=[HARMLESS]
    )
    request = DescribeConfigsRequest(resources=[resource])

    def acts() -> bool:
        response = wire.exchange(request, 4, DescribeConfigsResponse)
        return [each.value for each in response.results[0].configs] == [value]

    return acts
