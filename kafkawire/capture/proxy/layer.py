"""Takes what proxies send in front of Kafka from the first bytes of a connection.

What does not begin with a proxy's message comes out as it went in. Held bytes are bounded, and
the work is linear in them. Messages of proxies are in rows without their bytes: they may have
credentials.

    first bytes --messages of both sides, in turn--> rows, Begun, then the rest as runs
               `--others--> unchanged runs
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from ..rows import Row, Status
from ..tcp.connection import Connection, Run
from ..tcp.events import Closed, Gap
from .messages import (
    FROM_CLIENT,
    INVALID,
    Step,
    first_step,
    following,
    message_bytes,
    outcome,
    source_of,
)

MAX_HELD: Final = 1 << 18
"""Bytes held of both sides; the longest message has 65,551."""

MAX_MESSAGES: Final = 16
"""Messages in front of Kafka at most: proxies may be chained, and a proxy may refuse at first."""

HEAD: Final = 16
"""Bytes by which the protocol of a message is known."""

_UNCERTAIN: Final = frozenset({Step.START, Step.GREETING, Step.METHOD})
"""Steps at which the bytes may still be those of another protocol."""

DIRECTIONS: Final = ("request", "response")


class Begun(NamedTuple):
    """The bytes of these sides begin with a frame. client: the side that sent the first message."""

    client: int
    sides: tuple[int, ...]


Output: TypeAlias = Run | Row | Gap | Begun


class Held(NamedTuple):
    """The bytes of a run."""

    side: int
    position: int
    data: bytes
    packet: int
    time_ns: int
    known: int


class ProxySide:
    """One direction. taken: bytes of complete messages. need: bytes of the next one, at least."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.taken = 0
        self.need = 1
        self.texts: list[str] = []

    @property
    def rest(self) -> int:
        return len(self.data) - self.taken


class ProxyLayer:
    """The messages of proxies of a connection.

    is_done: whether all following bytes pass. start: the position of the first byte behind the
    messages, of the side with the longer ones.
    """

    def __init__(self) -> None:
        self.is_done = False
        self.start = 0
        self._client = -1
        self._step = Step.START
        self._protocol = ""
        self._messages = 0
        self._sides = ProxySide(), ProxySide()
        self._held: list[Held] = []

    def handle(self, event: Run | Gap | Closed) -> list[Output]:
        """Handle bytes of a side, that some are missing, or the end of the connection."""
        if not isinstance(event, Run):
            out = self._cut_off(event)
            return [*out, event] if isinstance(event, Gap) else out
        if self.is_done:
            return [event]
        side = self._sides[event.side]
        side.data += event.data
        self._held.append(
            Held(event.side, event.position, event.data, event.packet, event.time_ns, event.known)
        )
        if self._client < 0:
            opener = event.connection.client
            self._client = event.side if opener in (None, event.side) else -1
            if self._client < 0:
                return self._finish(event)
        return self._advance(event)

    # -- messages

    def _advance(self, run: Run) -> list[Output]:
        """Take the messages that are complete, in turn."""
        while self._step is not Step.END and self._messages < MAX_MESSAGES:
            if self._step is Step.START:
                rest = bytes(self._client_side.data[self._client_side.taken :][:HEAD])
                if not rest and run.side == self._client:
                    return []  # the next header may be in the next segment
                step = first_step(rest) if rest else None
                if step is None:
                    break
                self._protocol = step.value
                self._step = step
            side = self._sides[self._sender]
            if side.rest < side.need:
                return self._wait(run)
            data = bytes(side.data[side.taken :])
            size = message_bytes(self._step, data)
            if size == INVALID:
                return self._finish(run)
            if size > len(data):
                side.need = size
                return self._wait(run)
            self._take(side, data[:size], run)
        return self._finish(run)

    @property
    def _client_side(self) -> ProxySide:
        return self._sides[self._client]

    @property
    def _sender(self) -> int:
        return self._client if self._step in FROM_CLIENT else 1 - self._client

    def _take(self, side: ProxySide, message: bytes, run: Run) -> None:
        step = self._step
        if step in (Step.PROXY_1, Step.PROXY_2):
            source = source_of(step, message)
            assert source is not None
            peer = run.connection.name(self._client)
            side.texts.append(f"{step}: {source.text}, sent by {peer}")
            if source.client is not None:
                run.connection.source = self._client, source.client
        else:
            text = outcome(step, message)
            if text:
                side.texts.append(f"{step.partition(',')[0]} {text}")
        side.taken += len(message)
        side.need = 1
        self._messages += 1
        self._step = following(step, message)

    def _wait(self, run: Run) -> list[Output]:
        """Wait for more bytes, unless too many are held."""
        if sum(len(side.data) for side in self._sides) > MAX_HELD:
            return self._finish(run)
        return []

    # -- the rest

    @property
    def _is_certain(self) -> bool:
        """Whether the messages are those of a proxy: a greeting of SOCKS5 alone is too little."""
        return self._messages > (self._step is Step.METHOD)

    def _finish(self, run: Run) -> list[Output]:
        """Report the messages, and pass on what is behind them."""
        if not self._is_certain:
            for side in self._sides:
                side.taken = 0
        return self._release(run.connection, Status.PROXY, self._protocol)

    def _cut_off(self, event: Gap | Closed) -> list[Output]:
        """Report the messages, and what is there of the next one, which may have credentials."""
        if self.is_done:
            return []
        step, status, text = self._step, Status.PROXY, self._protocol
        if not self._is_certain and (step in _UNCERTAIN or self._client_side.rest <= len(step)):
            for side in self._sides:
                side.taken = 0
        elif step is not Step.START and (step is not Step.CONNECT or self._client_side.rest):
            status = Status.UNPARSED
            for side in self._sides:
                side.taken = len(side.data)
                side.texts.append(f"{step.partition(',')[0]}: not complete")
        return self._release(event.connection, status, text)

    def _release(self, connection: Connection, status: Status, text: str) -> list[Output]:
        """Make the rows of the messages of each side, and pass on what is behind them."""
        rows: list[Row] = []
        runs: list[Run] = []
        left = [side.taken for side in self._sides]
        for held in self._held:
            number = held.side
            cut = min(left[number], len(held.data))
            left[number] -= cut
            if cut and not left[number]:
                side = self._sides[number]
                direction = DIRECTIONS[number != self._client]
                error = "; ".join(side.texts) or text
                packet, time_ns = held.packet, held.time_ns
                rows.append(Row(packet, time_ns, direction, side.taken, status, error))
            if cut < len(held.data):
                rest = held._replace(position=held.position + cut, data=held.data[cut:])
                runs.append(Run(connection, *rest))
        begun = tuple(number for number, side in enumerate(self._sides) if side.taken)
        self.start = max(side.taken for side in self._sides)
        self.is_done = True
        self._held.clear()
        self._sides = ProxySide(), ProxySide()
        before: list[Output] = [Begun(self._client, begun)] if begun else []
        return [*before, *rows, *runs]
