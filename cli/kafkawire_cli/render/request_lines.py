"""The lines of `serve`: one per request when its response is sent, one per connection closed.

Text from clients is escaped, so that each line stays one.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from kafkawire.display import printable

from ..pipes import drop_output
from .message_table.lines import facts

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafkawire.broker import Close, Report


class RequestLines:
    """Prints the lines of a server.

    on_failure: called when a line cannot be written, as to a pipe that its reader has closed.
    No lines are printed after it.
    """

    def __init__(self) -> None:
        self.on_failure: Callable[[], object] = lambda: None
        self._error: OSError | None = None

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
        self.line(
            f"{request.node_id:>3} {request.connection:>4} {name:24} v{request.version:<3} "
            f"{request.correlation_id:>6} {request.size:>8} {report.took * 1000:>7.1f} ms  "
            f"{request.client_id or '-'}  {request_text} -> {response_text}"
        )

    def close(self, close: Close) -> None:
        """Print that a connection is closed, and why."""
        self.line(f"    {close.connection:>4} closed: {close.reason}")

    def line(self, text: str) -> None:
        """Print a line with the time."""
        if self._error is not None:
            return
        try:
            print(datetime.now().strftime("%H:%M:%S.%f")[:-3], printable(text), flush=True)
        except OSError as error:
            self._error = error
            drop_output()
            self.on_failure()

    def check(self) -> None:
        """Raise the error of the line that could not be written, if there is one."""
        if self._error is not None:
            raise self._error
