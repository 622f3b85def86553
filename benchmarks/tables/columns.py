"""Measures captures to Parquet tables, beside pyarrow alone that writes the same columns.

    python -m benchmarks.tables.columns [--traffic varied calls bulk] [--megabytes 20] [--rounds N]

Both write the tables `exchanges`, `records` and `partitions` with a codec, in row groups of the
same size, with the same encodings and statistics. Ours reads the capture; pyarrow maps Arrow files
with the columns into memory, so its time is that of encoding and compressing. A figure is CPU
seconds, start-up included; the contenders take turns.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow import ipc, parquet

from kafkawire.capture.tables import TABLES, read_tables
from kafkawire.capture.tables.parquet import columns_with_statistics, repeating_columns

from .. import report
from ..measure import Figure, figure, rotated
from ..pipeline import MEGABYTES, TRAFFIC, measured, ours, pieces
from ..pipeline import TABLES as MEASURED

CODECS: Final = ("zstd", "snappy", "none")
GROUP_ROWS: Final = 1 << 15
"""Rows of a row group, as kafkawire writes them."""


def save_columns(capture: Path, folder: Path) -> None:
    """Write the columns of the tables to Arrow files."""
    with ExitStack() as stack:
        files = {}
        for name in MEASURED:
            sink = stack.enter_context(pa.OSFile(str(folder / f"{name}.arrow"), "wb"))
            files[name] = stack.enter_context(ipc.new_file(sink, TABLES[name].schema))
        for name, batch in read_tables(capture, MEASURED):
            files[name].write_batch(batch)


def write_columns(folder: Path, codec: str, to: Path) -> None:
    """Write the saved columns to Parquet files with pyarrow."""
    for name in MEASURED:
        with pa.memory_map(str(folder / f"{name}.arrow")) as source:
            table = ipc.open_file(source).read_all()
            parquet.write_table(
                table,
                to / f"{name}.parquet",
                row_group_size=GROUP_ROWS,
                compression=codec,
                use_dictionary=list(repeating_columns(table.schema)),
                write_statistics=columns_with_statistics(table.schema),
            )


def run_size(traffic: str, megabytes: int, rounds: int, folder: Path) -> list[Figure]:
    """Measure a capture of a size."""
    capture, columns = folder / "capture.pcap", folder / "columns"
    folders = {name: folder / name for name in ("pyarrow alone", "kafkawire")}
    for each in (columns, *folders.values()):
        each.mkdir()
    with capture.open("wb", buffering=1 << 20) as out:
        out.writelines(pieces(traffic, megabytes * 10**6, folder))
    save_columns(capture, columns)
    chosen = [word for table in MEASURED for word in ("--table", table)]
    figures = []
    for codec in CODECS:
        alone, whole = (str(each) for each in folders.values())
        command = [
            sys.executable,
            "-m",
            "benchmarks.tables.columns",
            "--write",
            str(columns),
            codec,
            alone,
        ]
        contenders = {
            "pyarrow alone": command,
            "kafkawire": ours(capture, *chosen, "--compression", codec, "-o", whole),
        }
        taken: dict[str, list[float]] = {name: [] for name in contenders}
        for turn in range(rounds):
            for name in rotated(contenders, turn):
                for file in folders[name].iterdir():
                    file.unlink()
                taken[name].append(measured(contenders[name], folder / "out").cpu)
        for table in MEASURED:
            one, other = (
                parquet.read_table(each / f"{table}.parquet") for each in folders.values()
            )
            if not one.equals(other):
                raise AssertionError(f"{traffic}, {codec}: not both wrote the same {table}")
        case = f"{traffic}, {megabytes} MB, {codec}"
        for name, seconds in taken.items():
            figures.append(figure("pcap to tables vs pyarrow alone", case, name, "s", seconds))
    return figures


def run(rounds: int, megabytes: int = MEGABYTES, traffic: Sequence[str] = TRAFFIC) -> list[Figure]:
    """Measure each kind of traffic."""
    figures: list[Figure] = []
    for kind in traffic:
        with tempfile.TemporaryDirectory(prefix="kafkawire-tables-") as folder:
            figures += run_size(kind, megabytes, rounds, Path(folder))
    return figures


def main() -> None:
    """Print the tables and write the figures; with --write, write columns with pyarrow."""
    parser = argparse.ArgumentParser(prog="benchmarks.tables.columns", description=__doc__)
    parser.add_argument("--traffic", choices=TRAFFIC, nargs="+", default=list(TRAFFIC))
    parser.add_argument("--megabytes", type=int, default=MEGABYTES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", nargs=3, metavar=("FOLDER", "CODEC", "TO"))
    chosen = parser.parse_args()
    if chosen.write:
        folder, codec, to = chosen.write
        write_columns(Path(folder), codec, Path(to))
        return
    figures = run(chosen.rounds, chosen.megabytes, chosen.traffic)
    print(report.tables(figures))
    print(f"\n{report.save(figures)}")


if __name__ == "__main__":
    main()
