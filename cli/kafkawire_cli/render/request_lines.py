"""The lines of `serve`: one per request when its response is sent, one per connection closed.

Text from clients is escaped, so that each line stays one. A heading precedes the first of them.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from kafkawire.display import printable

from ..pipes import drop_output
from .message_table.lines import facts

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafkawire.broker import Close, Report


HEADING: Final = (
    f"{'time':12} node conn {'api':24} ver    corr    bytes    waited  client  request -> response"
)
BEFORE_EVENT: Final = " " * len("node conn ")
"""What precedes an event that is not of a connection."""


class RequestLines:
    """Prints the lines of a server.

    on_failure: called when a line cannot be written, as to a pipe that its reader has closed.
    No lines are printed after it.
    """

    def __init__(self) -> None:
        self.on_failure: Callable[[], object] = lambda: None
        self._error: OSError | None = None
        self._has_heading = False

    def report(self, report: Report) -> None:
        """Print a request and its response."""
        request, response = report.request, report.response
        request_text = str(facts(request.body, request.version, request.api_key, "request"))
        if response is None:
            response_text = "no response"
        else:
            response_facts = facts(response, request.version, request.api_key, "response")
            response_text = str(response_facts) or "ok"
        name = type(request.body).__name__.removesuffix("Request")
        waited = f"{report.took * 1000:.1f} ms" if report.took else ""
        self._of_connection(
            f"{request.node_id:>4} {request.connection:>4} {name:24} {request.version:>3} "
            f"{request.correlation_id:>7} {request.size:>8} {waited:>9}  "
            f"{request.client_id or '-'}  {request_text} -> {response_text}"
        )

    def close(self, close: Close) -> None:
        """Print that a connection is closed, and why."""
        self._of_connection(f"     {close.connection:>4} closed: {close.reason}")

    def event(self, text: str) -> None:
        """Print what happens in the node itself."""
        self.line(f"{BEFORE_EVENT}{text}")

    def _of_connection(self, text: str) -> None:
        if not self._has_heading:
            self._has_heading = True
            self._write(HEADING)
        self.line(text)

    def line(self, text: str) -> None:
        """Print a line with the time."""
        self._write(f"{datetime.now().strftime('%H:%M:%S.%f')[:-3]} {printable(text)}")

    def _write(self, line: str) -> None:
        if self._error is not None:
            return
        try:
            print(line, flush=True)
        except OSError as error:
            self._error = error
            drop_output()
            self.on_failure()

    def check(self) -> None:
        """Raise the error of the line that could not be written, if there is one."""
        if self._error is not None:
            raise self._error
