"""Collects the columns that identify an exchange, one value per exchange.

Values equal those that a test makes of decoded messages of every capture.
"""

from __future__ import annotations

from typing import Final, TypeAlias, final

from mypy_extensions import i64

from ...exchanges.message_pairs import Pair
from ...files.blocks import NO_TIME
from ...multifile import FILE_BITS, PacketPositions
from ..extraction.messages import ExtractedMessage
from .buffers import Numbers

NUMBER: Final = (1 << 40) - 1


ExtractedExchange: TypeAlias = Pair[ExtractedMessage]
"""A request with its response, whose bodies may be undecoded."""


@final
class ExchangeHeads:
    """Values of the columns that identify an exchange (EXCHANGE), one per exchange."""

    def __init__(self) -> None:
        self.file: list[str | None] = []
        self.packet: Numbers = Numbers()
        self.time_ns: Numbers = Numbers()
        self.connection: Numbers = Numbers()
        self.client: list[str | None] = []
        self.broker: list[str | None] = []
        self.api_key: Numbers = Numbers()
        self.api_name: list[str | None] = []
        self.api_version: Numbers = Numbers()
        self.correlation_id: Numbers = Numbers()
        self.client_id: list[str | None] = []
        self.response_file: list[str | None] = []
        self.response_packet: Numbers = Numbers()

    def add(self, exchange: ExtractedExchange, files: FileNames) -> None:
        """Add an exchange."""
        request, response = exchange.request, exchange.response
        side = response if request is None else request
        assert side is not None
        ends = exchange.ends
        self.connection.put64(ends.connection)
        self.client.append(ends.client)
        self.broker.append(ends.broker)
        self.api_key.put16(side.api_key)
        self.api_name.append(side.api_name)
        self.api_version.put16(side.api_version)
        self.correlation_id.put32(side.correlation_id)
        self.client_id.append(side.client_id)
        if request is None:
            self.file.append(None)
            self.packet.none64()
            self.time_ns.none64()
        else:
            self.file.append(files.of(request.packet))
            self.packet.put64(request.packet & NUMBER)
            if request.time_ns == files.never:
                self.time_ns.none64()
            else:
                self.time_ns.put64(request.time_ns)
        if response is None:
            self.response_file.append(None)
            self.response_packet.none64()
        else:
            self.response_file.append(files.of(response.packet))
            self.response_packet.put64(response.packet & NUMBER)


@final
class FileNames:
    """The names of the files that packets are in. never: the time of a packet without one."""

    def __init__(self, traffic: PacketPositions) -> None:
        self.traffic: PacketPositions = traffic
        self.never: i64 = NO_TIME
        self.index: i64 = -1
        self.name: str = ""

    def of(self, packet: i64) -> str:
        """Return the name of a packet's file."""
        index = packet >> 40
        if index != self.index:
            self.index = index
            self.name = self.traffic.place(packet)[0]
        return self.name


assert FILE_BITS == 40  # a literal above, as compiled code needs a constant
