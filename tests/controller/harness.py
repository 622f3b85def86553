"""One controller whose records are committed at once."""

from __future__ import annotations

from random import Random
from typing import Any, Final, TypeVar

from kafkawire.configs.features import NEWEST
from kafkawire.controller import (
    Append,
    BecameLeader,
    Committed,
    ControllerConfig,
    Effect,
    Published,
    QuorumController,
    RequestReceived,
    Respond,
    VersionedRecord,
)
from kafkawire.controller.state import supported_features
from kafkawire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kafkawire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kafkawire.messages.broker_registration_request import (
    BrokerRegistrationRequest,
    Feature,
    Listener,
)
from kafkawire.messages.broker_registration_response import BrokerRegistrationResponse
from kafkawire.primitives import Message

CLUSTER: Final = "cluster"
M = TypeVar("M", bound=Message)


def registration(broker_id: int, incarnation: int = 1, **fields: Any) -> Message:
    """A registration of a broker of Kafka 4.3 with one directory."""
    given: dict[str, Any] = {
        "broker_id": broker_id,
        "cluster_id": CLUSTER,
        "incarnation_id": broker_id.to_bytes(8, "big") + incarnation.to_bytes(8, "big"),
        "listeners": [Listener(name="PLAINTEXT", host="host", port=9092, security_protocol=0)],
        "features": [
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in supported_features(NEWEST).items()
        ],
        "rack": None,
        "log_dirs": [b"directory" + bytes(3) + broker_id.to_bytes(4, "big")],
    }
    return BrokerRegistrationRequest(**(given | fields))


def codes_of(response: Any) -> str:
    """Show the error codes of a response in their order."""
    found: list[int] = []

    def walk(value: Any) -> None:
        if isinstance(value, list):
            for each in value:
                walk(each)
        elif hasattr(value, "__match_args__"):
            for name in value.__match_args__:
                if name == "error_code":
                    found.append(int(value.error_code))
                walk(getattr(value, name))

    walk(response)
    return f"{type(response).__name__} {found}"


class Harness:
    """A controller, the log that it wrote, and the effects since the last look."""

    def __init__(self, config: ControllerConfig | None = None, seed: int = 1) -> None:
        self.ids = 0
        self.now = 0.0
        self.controller = QuorumController(
            config or ControllerConfig(CLUSTER), Random(seed), self.new_uuid
        )
        self.log: list[VersionedRecord] = []
        self.published: list[Published] = []
        self.responses: dict[int, Message] = {}
        self.requests = 0
        self.take(self.controller.handle(BecameLeader(1, 0), 0.0))

    def new_uuid(self) -> bytes:
        self.ids += 1
        return self.ids.to_bytes(16, "big")

    def take(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Append):
                assert effect.base_offset == len(self.log)
                self.log += effect.records
                records = [each.message for each in effect.records]
                self.take(self.controller.handle(Committed(effect.base_offset, records), self.now))
            elif isinstance(effect, Respond):
                self.responses[effect.request_id] = effect.response
            elif isinstance(effect, Published):
                self.published.append(effect)

    def exchange(self, body: Message, expected: type[M], version: int = 0) -> M:
        number = self.send(body, version)
        while number not in self.responses:
            due = self.controller.next_deadline()
            assert due is not None, "nothing is due"
            assert due <= self.now, "nothing is due"
            self.advance(0.0)
        response = self.responses[number]
        assert isinstance(response, expected)
        return response

    def send(self, body: Message, version: int = 0) -> int:
        """Send a request; return its number."""
        self.requests += 1
        event = RequestReceived(self.requests, body, version)
        self.take(self.controller.handle(event, self.now))
        return self.requests

    def advance(self, seconds: float) -> None:
        self.now += seconds
        self.take(self.controller.advance(self.now))

    def register(self, broker_id: int, incarnation: int = 1, **fields: Any) -> int:
        body = registration(broker_id, incarnation, **fields)
        response = self.exchange(body, BrokerRegistrationResponse, 4)
        assert response.error_code == 0
        return response.broker_epoch

    def heartbeat(self, broker_id: int, **fields: Any) -> BrokerHeartbeatResponse:
        epoch = self.controller.image.brokers[broker_id].epoch
        body = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=epoch,
            current_metadata_offset=len(self.log),
            **fields,
        )
        return self.exchange(body, BrokerHeartbeatResponse, 2)

    def start(self, *broker_ids: int, **fields: Any) -> None:
        """Register and unfence brokers."""
        for broker_id in broker_ids:
            self.register(broker_id, **fields)
            self.heartbeat(broker_id)
