"""Counts requests, responses, errors and latencies by API.

Each request and each response is counted once, even if the other is not in the capture; a
Produce request with acks=0 expects no response.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.tables.extraction.entities import ERROR_CODES, THROTTLING, Entities
from kafkawire.protocol.error_code import ErrorCode

from .cell import Cell
from .expected import WAITS_MS, allowed_wait_ns, are_expected, expects_no_response
from .quantiles import Quantiles
from .reading import Collector


class Api(Cell[Quantiles]):
    """The counts of one API, or of one API and group (version, client, broker or connection).

    without_response: requests whose response is not in the capture; without_request: the opposite.
    errors: responses that contain an error code at any depth; expected_errors: those of them that
    are normal in the protocol. open_polls: requests without a response that let the broker wait,
    for data or for other members.
    """

    def __init__(self, api_key: int | None, api_name: str | None, group: str | None) -> None:
        super().__init__(Quantiles())
        self.api_key = api_key
        self.api_name = api_name
        self.group = group
        self.without_response = self.expected_errors = self.open_polls = 0
        self.throttled = self.max_throttle_time_ms = 0

    @property
    def without_request(self) -> int:
        """Responses whose request is not in the capture."""
        return self.exchanges - self.requests

    @property
    def name(self) -> str:
        return self.api_name or ("unknown" if self.api_key is None else f"key {self.api_key}")

    @property
    def error_rate(self) -> float:
        """Share of responses with errors."""
        return self.errors / self.responses if self.responses else 0.0

    @property
    def failures(self) -> int:
        """Responses with errors that are not normal in the protocol."""
        return self.errors - self.expected_errors

    @property
    def failure_rate(self) -> float:
        """Share of responses with errors that are not normal in the protocol."""
        return self.failures / self.responses if self.responses else 0.0

    @property
    def harm(self) -> int:
        """Failures, and requests whose response is missing although it had not to wait."""
        return self.failures + self.without_response - self.open_polls

    def most_common_codes(self) -> list[tuple[int, int]]:
        """Return the error codes and the number of responses with each, the most frequent first."""
        return Counter(self.codes).most_common()

    def json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "api_key": self.api_key,
            "api_name": self.api_name,
            "requests": self.requests,
            "responses": self.responses,
            "unanswered": self.without_response,
            "alone": self.without_request,
            "errors": self.errors,
            "expected_errors": self.expected_errors,
            "error_rate": self.error_rate,
            "error_codes": {ErrorCode.name_of(code): n for code, n in self.most_common_codes()},
            "request_bytes": self.request_bytes,
            "response_bytes": self.response_bytes,
            "min_ns": self.latency.min,
            "p50_ns": self.latency.at(0.5),
            "p95_ns": self.latency.at(0.95),
            "p99_ns": self.latency.at(0.99),
            "max_ns": self.latency.max,
            "throttled": self.throttled,
            "max_throttle_time_ms": self.max_throttle_time_ms,
        }


BY: Final[dict[str, Callable[[Exchange], str | None] | None]] = {
    "api": None,  # every group has its own API
    "version": lambda exchange: _version(exchange.main_row.api_version),
    "client": lambda exchange: exchange.main_row.client_id,
    "broker": lambda exchange: exchange.broker,
    "connection": lambda exchange: str(exchange.connection),
}
"""What requests can be grouped by, besides their API."""


def _version(version: int | None) -> str | None:
    return None if version is None else f"v{version}"


def _slowness(api: Api) -> int:
    """Return the 99th percentile of latency; that of APIs that wait says nothing of the broker."""
    return 0 if api.api_key in WAITS_MS else api.latency.at(0.99) or 0


ORDERS: Final[dict[str, Callable[[Api], tuple[int, ...]]]] = {
    "harm": lambda api: (-api.harm, -_slowness(api)),
    "requests": lambda api: (-api.requests,),
    "errors": lambda api: (-api.failures, -api.errors),
    "unanswered": lambda api: (-api.without_response,),
    "latency": lambda api: (-(api.latency.at(0.99) or 0),),
    "api": lambda _: (),
}
"""Orders of APIs; those that are equal are sorted by API key."""


class ApiTotals(NamedTuple):
    """Of all APIs: the names of those with requests, and the responses without a request."""

    api_names: set[str]
    responses_without_request: int


class Apis(Collector):
    """Collects the requests of a capture, by API and group."""

    entities = frozenset({ERROR_CODES, THROTTLING})

    def __init__(self, by: str = "api") -> None:
        self._group_of = BY[by]
        self._apis: dict[tuple[int | None, str | None], Api] = {}

    def exchange(self, exchange: Exchange, entities: Entities) -> None:
        """Count the next exchange."""
        header = exchange.request or exchange.main_row
        api_key, group_of = header.api_key, self._group_of
        group = None if group_of is None else group_of(exchange)
        api = self._apis.get((api_key, group))
        if api is None:
            api = self._apis[api_key, group] = Api(api_key, header.api_name, group)
        api.count(exchange, entities)
        if exchange.response is None:
            if exchange.request is not None and not expects_no_response(exchange):
                api.without_response += 1
                api.open_polls += allowed_wait_ns(exchange) > 0
            return
        codes, throttle_time_ms = entities.error_codes, entities.numbers.get(THROTTLING)
        if codes:
            api.expected_errors += are_expected(api_key, codes)
        if throttle_time_ms:
            api.throttled += 1
            api.max_throttle_time_ms = max(api.max_throttle_time_ms, throttle_time_ms)

    def totals(self) -> ApiTotals:
        """Return the totals of all APIs."""
        apis = self._apis.values()
        return ApiTotals(
            {one.name for one in apis if one.requests}, sum(one.without_request for one in apis)
        )

    def in_order(self, order: str) -> list[Api]:
        """Return the counts in one of ORDERS."""
        return sorted(self.all, key=ORDERS[order])

    @property
    def all(self) -> list[Api]:
        """Return the counts by API key, then by number of requests; unknown APIs last."""
        return sorted(
            self._apis.values(),
            key=lambda one: (
                one.api_key is None,
                one.api_key or 0,
                -one.requests,
                one.group or "",
            ),
        )
