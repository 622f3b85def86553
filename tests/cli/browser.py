"""A headless Chromium for tests, driven over pipes by the Chrome DevTools Protocol."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.conftest import missing

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
FLAGS: Final = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe")


class Page:
    """A tab. messages: what the console showed; requests: addresses that were loaded."""

    def __init__(self, commands: int, events: int) -> None:
        self._commands = os.fdopen(commands, "wb", buffering=0)
        self._events = os.fdopen(events, "rb")
        self._buffer = b""
        self._session: str | None = None
        self._number = 0
        self.messages: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> Any:
        """Call a method of the protocol, and note the events before its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        self._commands.write(json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self._number:
                assert "error" not in found, found
                return found["result"]
            self._note(found)

    def _next(self) -> Any:
        while b"\0" not in self._buffer:
            more = os.read(self._events.fileno(), 1 << 20)
            assert more, "the browser has ended"
            self._buffer += more
        text, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(text)

    def _note(self, event: Any) -> None:
        params = event.get("params", {})
        match event.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Runtime.exceptionThrown" | "Log.entryAdded" | "Runtime.consoleAPICalled":
                self.messages.append(json.dumps(params)[:2000])
            case _:
                pass

    def open(self, address: str, *, dark: bool = False, width: int = 1200) -> None:
        """Open a page of `report`, and wait until it is drawn."""
        self.messages.clear()
        self.requests.clear()
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=address)
        self.wait("document.documentElement?.dataset.ready === 'yes'")

    def do(self, script: str) -> Any:
        """Evaluate an expression; a promise is awaited."""
        result = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until an expression is true."""
        for _ in range(400):
            if self.do(f"Boolean({condition})"):
                return
            self.do("new Promise((done) => setTimeout(done, 50))")
        raise AssertionError(f"never true: {condition}; {self.messages}")

    def close(self) -> None:
        """End the browser."""
        self._session = None
        self.call("Browser.close")
        self._commands.close()
        self._events.close()


@contextmanager
def browser(profile: Path) -> Iterator[Page]:
    """Start Chromium."""
    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        missing("Chromium")
    read_commands, commands = os.pipe()
    events, write_events = os.pipe()
    redirected = f'exec "$@" 3<&{read_commands} 4>&{write_events}'
    command = ["bash", "-c", redirected, "bash", program, *FLAGS, f"--user-data-dir={profile}"]
    with subprocess.Popen(
        command, pass_fds=(read_commands, write_events), stderr=subprocess.DEVNULL
    ) as running:
        os.close(read_commands)
        os.close(write_events)
        try:
            page = Page(commands, events)
            yield page
            page.close()
        finally:
            running.terminate()
