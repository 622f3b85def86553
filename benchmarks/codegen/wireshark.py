"""Measures the dissector for Wireshark: how it is made, and what it costs beside Wireshark's own.

CPU time of tshark alone; both dissectors get the same capture, copies of a recording whose
messages Wireshark 4.0 decodes too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import process_time
from typing import Final

from kafkawire_cli.input.protocol_facts import protocol_facts
from kafkawire_codegen import schemas_dir
from kafkawire_codegen.targets import generate_target

from ..captures import grown, recorded
from ..measure import Figure, figure, rotated

MADE: Final = "codegen-wireshark"
DISSECTED: Final = "codegen-wireshark, tshark"
RECORDING: Final = Path(__file__).resolve().parents[2] / "fixtures" / "captures" / "kcat-kf.pcap"
PORT: Final = 19092
SIZE: Final = 1_000_000


def run(rounds: int) -> list[Figure]:
    """Measure both dissectors, if there is a tshark."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        figures = _made(folder, rounds)
        if shutil.which("tshark") is not None:
            figures += _dissected(folder, rounds)
    return figures


def _made(folder: Path, rounds: int) -> list[Figure]:
    taken: list[float] = []
    for turn in range(rounds):
        before = process_time()
        generate_target(
            "wireshark", schemas_dir(), folder / str(turn), None, protocol_facts(schemas_dir())
        )
        taken.append(process_time() - before)
    size = (folder / "0" / "kafkawire.lua").stat().st_size / 1000
    return [
        figure(MADE, "generate", "kafkawire", "s", taken),
        figure(MADE, "size of the dissector", "kafkawire", "kB", [size]),
    ]


def _dissected(folder: Path, rounds: int) -> list[Figure]:
    capture = folder / "copies.pcap"
    capture.write_bytes(b"".join(grown([recorded(RECORDING)], SIZE)))
    script = folder / "0" / "kafkawire.lua"
    ours = "-X", f"lua_script:{script}", "--disable-protocol", "kafka"
    ports = "-o", f"kafkawire.ports:{PORT}"
    theirs = "-d", f"tcp.port=={PORT},kafka"
    figures: list[Figure] = []
    for form in (("-T", "json"), ("-T", "fields", "-e", "frame.number")):
        commands = {
            "kafkawire": ["tshark", "-r", str(capture), *ours, *ports, *form],
            "Wireshark": ["tshark", "-r", str(capture), *theirs, *form],
        }
        taken: dict[str, list[float]] = {name: [] for name in commands}
        for turn in range(rounds):
            for name in rotated(commands, turn):
                taken[name].append(_cpu_seconds(commands[name]))
        case = f"tshark {' '.join(form[:2])}, {SIZE / 1e6:.0f} MB"
        figures += [figure(DISSECTED, case, name, "s", values) for name, values in taken.items()]
    return figures


def _cpu_seconds(command: Sequence[str]) -> float:
    before = os.times()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = os.times()
    own = after.children_user - before.children_user
    return own + after.children_system - before.children_system
