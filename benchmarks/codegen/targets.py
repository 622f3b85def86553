"""Measures what each target of the generator takes and makes: CPU time, files, bytes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import process_time
from typing import Final

from kafkawire_cli.input.protocol_facts import protocol_facts
from kafkawire_codegen import schemas_dir
from kafkawire_codegen.targets import TARGETS, generate_target
from kafkawire_codegen.targets.supplied import Supplied

from ..measure import Figure, figure

CONTENDER: Final = "kafkawire"


def run(rounds: int) -> list[Figure]:
    """Generate every target from all schemas, in turns: a table for each kind of figure."""
    taken: dict[tuple[str, str, str], list[float]] = {}
    for _ in range(rounds):
        for target in TARGETS:
            with tempfile.TemporaryDirectory() as folder:
                out = Path(folder)
                start = process_time()
                generated = generate_target(
                    target, schemas_dir(), out, None, facts_of_our_schemas()
                )
                milliseconds = (process_time() - start) * 1e3
                size = sum(f.stat().st_size for f in out.rglob("*") if f.is_file())
            for kind, unit, value in (
                ("CPU time", "ms", milliseconds),
                ("files", "files", generated.files),
                ("size", "kB", size / 1e3),
            ):
                taken.setdefault((kind, unit, target), []).append(value)
    ordered = sorted(taken.items(), key=lambda item: item[0][0])
    return [
        figure(f"codegen-targets, {kind}", target, CONTENDER, unit, values)
        for (kind, unit, target), values in ordered
    ]


def facts_of_our_schemas() -> Supplied:
    """Return what the command line supplies for kafkawire's own schemas."""
    return protocol_facts(schemas_dir())
