"""Runs tshark with the generated dissector, and reads what it shows.

dissect(capture)  -> Shown { messages, text of errors }
"""

from __future__ import annotations

import atexit
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Final
from xml.etree import ElementTree as ET

from kafkawire_cli.input.protocol_facts import protocol_facts
from kafkawire_codegen import schemas_dir
from kafkawire_codegen.targets import generate_target
from tests.conftest import missing

PREFIX: Final = "kafkawire"
TIMEOUT: Final = 120
INTERNAL: Final = re.compile(r"\.lua:\d")
"""What an error that Lua raises itself begins with: file and line."""
NOT_XML: Final = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
"""Characters that XML cannot have; tshark 4.0 writes those of strings as they are."""


@dataclass(slots=True)
class Item:
    """A field in the tree; `data`: its bytes as hex."""

    name: str
    show: str
    data: str
    inside: list[Item]

    def walk(self) -> Iterator[Item]:
        """This item and those inside it, in order."""
        yield self
        for each in self.inside:
            yield from each.walk()

    def find(self, name: str) -> Item | None:
        """The first item of that name."""
        return next((each for each in self.walk() if each.name == f"{PREFIX}.{name}"), None)

    def value(self, name: str) -> str | None:
        """The value of the first item of that name."""
        found = self.find(name)
        return None if found is None else found.show


@dataclass(slots=True)
class Shown:
    """The messages of a capture: number of the packet and tree of each."""

    messages: list[tuple[int, Item]] = field(default_factory=list)
    errors: str = ""


@cache
def dissector() -> Path:
    """Generate the dissector, once; its folder is removed when Python exits."""
    folder = mkdtemp(prefix="kafkawire-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    generate_target("wireshark", schemas_dir(), Path(folder), None, protocol_facts(schemas_dir()))
    return Path(folder) / "kafkawire.lua"


def program() -> str:
    """Find tshark; without it the test is skipped, or fails in CI."""
    return shutil.which("tshark") or missing("tshark")


def run(capture: Path, *arguments: str, script: Path | None = None, own: bool = True) -> str:
    """Run tshark; its output and its errors. own: with our dissector instead of Wireshark's."""
    ours = ["-X", f"lua_script:{script or dissector()}", "--disable-protocol", "kafka"]
    command = [program(), "-r", str(capture), *(ours if own else []), *arguments]
    done = subprocess.run(command, capture_output=True, timeout=TIMEOUT, check=False)
    errors = done.stderr.decode("utf-8", "replace")
    assert done.returncode == 0, errors
    assert "Lua" not in errors, errors
    return done.stdout.decode("utf-8", "replace")


def dissect(capture: Path, *arguments: str, script: Path | None = None) -> Shown:
    """Dissect a capture, with the ports of our recordings as those of brokers."""
    text = run(
        capture,
        *("-T", "pdml", "-J", PREFIX, "-o", "kafkawire.ports:9092-9094,19092"),
        *arguments,
        script=script,
    )
    assert "Lua Error" not in text
    assert INTERNAL.search(text) is None, "an error of Lua was shown as a malformed message"
    shown = Shown()
    for packet in ET.fromstring(NOT_XML.sub("?", text)).iter("packet"):
        number = _number(packet)
        for proto in packet.iter("proto"):
            if proto.get("name") == PREFIX:
                shown.messages.append((number, _item(proto)))
    return shown


def _number(packet: ET.Element) -> int:
    (number,) = [each.get("show", "") for each in packet.iter("field") if each.get("name") == "num"]
    return int(number)


def _item(element: ET.Element) -> Item:
    return Item(
        element.get("name", ""),
        element.get("show", ""),
        element.get("value", ""),
        [_item(each) for each in element],
    )


def fields(capture: Path, names: Sequence[str], *arguments: str) -> list[list[str]]:
    """Run `tshark -T fields`: a row for each packet."""
    wanted = [part for name in names for part in ("-e", name)]
    text = run(capture, "-T", "fields", *wanted, *arguments)
    return [line.split("\t") for line in text.splitlines()]
