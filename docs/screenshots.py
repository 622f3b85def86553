"""Draws what commands print as SVG files: `python -m docs.screenshots [FOLDER]`, docs/images/.

The same output gives the same bytes, so that a test detects outdated pictures; of that of a page
with charts, which Chromium draws, a test holds the size alone.
"""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
from base64 import b64decode
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rich.console import Console
from rich.text import Text

from tests.cli.browser import browser

ROOT: Final = Path(__file__).resolve().parents[1]
IMAGES: Final = ROOT / "docs" / "images"
WIDTH: Final = 118
"""Columns of the terminal that is drawn."""

COMMANDS: Final = {
    "groups": "kafkawire groups fixtures/captures/ck-group-range.pcap",
    "decode": "kafkawire decode fixtures/captures/kcat-kf--loss.pcap --format table",
    "explain": "kafkawire explain 0267000000 --api Heartbeat --version 4",
}
"""Name of the picture -> the command whose output it shows."""

PAGE: Final = "fixtures/incidents/rebalance-storm.pcap.gz"
"""The capture whose page of `kafkawire report` is drawn."""
SECTIONS: Final = ("findings", "groups")
"""What of the page is drawn."""
PAGE_WIDTH: Final = 1400
PAGE_HEIGHT: Final = 1060
"""Pixels: down to the chart of the members."""

LINES: Final = 40
"""Lines that a picture shows at most."""

TEMPLATE: Final = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
  font-family: ui-monospace, Menlo, Consolas, monospace;
  font-size: {char_height}px;
}}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
<rect width="{width}" height="{height}" rx="8" fill="#292929"/>
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""Rich's own template without its fonts, which a browser would fetch from elsewhere."""


def picture(name: str) -> str:
    """Run a command and draw its prompt and output."""
    command = COMMANDS[name]
    done = subprocess.run(
        [sys.executable, "-m", "kafkawire_cli.main", *shlex.split(command)[1:]],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": str(WIDTH)},
        capture_output=True,
        text=True,
        check=False,
    )
    shown = done.stdout.splitlines()
    if len(shown) > LINES:
        shown = [*shown[: LINES - 1], "..."]
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ {command}", style="bold"))
    for line in shown:
        console.print(Text(line[:WIDTH]))
    return console.export_svg(title=command, code_format=TEMPLATE, unique_id=f"kafkawire-{name}")


def page_picture() -> bytes:
    """Write a page of `kafkawire report`, and draw a part of it as PNG."""
    with TemporaryDirectory() as folder, browser(Path(folder, "profile")) as page:
        report = Path(folder, "report.html")
        command = ["-m", "kafkawire_cli.main", "report", PAGE, "-o", str(report)]
        subprocess.run([sys.executable, *command], cwd=ROOT, check=True, capture_output=True)
        page.open(report.as_uri(), width=PAGE_WIDTH)
        page.do(
            "document.querySelectorAll('main > section').forEach("
            f"(each) => {{ each.hidden = !{list(SECTIONS)}.includes(each.id) }})"
        )
        clip = {"x": 0, "y": 0, "width": PAGE_WIDTH, "height": PAGE_HEIGHT, "scale": 1}
        shot = page.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        return b64decode(shot["data"])


if __name__ == "__main__":
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    out.mkdir(exist_ok=True)
    (out / "report.png").write_bytes(page_picture())
    for name in COMMANDS:
        (out / f"{name}.svg").write_text(picture(name), encoding="utf-8")
