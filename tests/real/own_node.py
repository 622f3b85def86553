"""A node of ours as a process, on a data directory: beside a real Kafka, or in its place.

Only the process started here is ended here; its output is shown on failure.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

STOP_SECONDS: Final = 60.0
READY: Final = "listening on "


@contextmanager
def serving(
    directory: Path,
    port: int | None,
    controllers: str,
    settings: Mapping[str, str] = {},
    options: Sequence[str] = (),
) -> Iterator[subprocess.Popen[str]]:
    """Run `kafkawire serve --data-dir`; it is stopped in order at the end.

    port: None where `listeners` of the settings has them.
    """
    command = [sys.executable, "-m", "kafkawire", "serve", "--quiet"]
    command += ["--data-dir", str(directory), *([] if port is None else ["--port", str(port)])]
    command += ["--controllers", controllers, *options]
    command += [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    log = directory.with_name(f"{directory.name}.output")
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=output, encoding="utf-8", bufsize=1
        )
    try:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith(READY):
                break
        else:
            raise AssertionError(f"the node stopped:\n{''.join(lines)}{log.read_text()}")
        yield process
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=STOP_SECONDS)
        assert process.returncode == 0, log.read_text()
    finally:
        process.kill()
        with process:  # closes its pipe
            process.wait(STOP_SECONDS)
