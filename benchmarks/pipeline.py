"""Measures a capture file to rows: kafkawire and tshark, each as a command.

    python -m benchmarks.pipeline [--traffic varied calls bulk] [--megabytes 100 1000] [--rounds N]
                                  [--without "tshark json, kafka only"]

Contenders read the same file and take turns; a figure is CPU time (user and system), so that
other load hardly affects the ratio; every command must print as many messages as the recordings
contain. Byte code is cached, as after pip.

    tshark -T fields    30 fields of each message, keys, values and headers of records among them
      ours              the tables that hold those fields: `exchanges`, `records` and
                        `partitions`, as Parquet (zstd, or snappy) or as Arrow files, in one pass
    tshark -T json      every field of each message and every record
      ours              `decode --format jsonl --records`: every field, every record, and on which
                        connection, to which request
      `kafka only`      the same without the layers below Kafka (-J kafka), which ours has not

    varied   hardly two messages alike, with hundreds of topics and groups (`benchmarks.varied`)
    calls    many short connections of clients of 2017 to 2022 that tshark 4.0 decodes nearly whole
             (3 of 4 messages at least), 300 bytes a message: what test scenarios look like
    bulk     producers and consumers at work, thousands of records a second (`benchmarks.bulk`)

The last two repeat recordings, so that caches hit more often than in a network of many teams.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from . import report, varied
from .bulk import PORT, record
from .captures import grown, recorded
from .measure import Figure, figure, rotated

ROOT: Final = Path(__file__).resolve().parents[1]
RECORDINGS: Final = {
    "captures/kcat-kf": (19092,),
    "captures/kjs-all": (36449,),
    "captures/fg-max-v0.11.0": (9092,),
    "recordings/live/kafkago-kf": (9192,),
    "recordings/live/aio-all": (45717, 40297),
    "recordings/live/kp22-all": (39817,),
    "recordings/live/fg-max-v2.4": (9092,),
}
"""Recording in fixtures/ -> ports of its brokers, which tshark needs."""

TRAFFIC: Final = ("varied", "calls", "bulk")

FIELDS: Final = """
    frame.number frame.time_epoch tcp.stream ip.src ip.dst tcp.srcport tcp.dstport kafka.len
    kafka.api_key kafka.request_key kafka.response_key kafka.api_version kafka.request.version
    kafka.response.version kafka.correlation_id kafka.client_id kafka.topic_name
    kafka.partition_id kafka.error kafka.offset kafka.consumer_group kafka.transactional_id
    kafka.throttle_time kafka.message_key kafka.message_value kafka.message_timestamp
    kafka.header_key kafka.header_value kafka.batch_codec kafka.producer_id
"""

TABLES: Final = ("exchanges", "records", "partitions")

MEGABYTES: Final = 20
"""Size of the capture that `make bench` uses; --megabytes chooses others."""


class Run(NamedTuple):
    """Cost of a command: CPU and wall-clock seconds, MiB of peak memory."""

    cpu: float
    wall: float
    peak: float


def recordings() -> list[tuple[Path, tuple[int, ...]]]:
    """List the recordings with the ports of their brokers."""
    return [(ROOT / "fixtures" / f"{name}.pcap", ports) for name, ports in RECORDINGS.items()]


def measured(
    command: Sequence[str], out: Path, *, over: bool = False, ends: Sequence[int] = (0,)
) -> Run:
    """Run a command with its output in a new file.

    over: overwrite the existing file, so that the kernel need not allocate memory. ends: its
    expected exit codes.
    """
    if not over:
        out.unlink(missing_ok=True)  # before timing: freeing it takes time, too
    out.touch()
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    before = os.times()
    with out.open("r+b") as sink:
        process = subprocess.Popen(command, stdout=sink, stderr=subprocess.DEVNULL, env=environment)
        _, status, used = os.wait4(process.pid, 0)
        wall = os.times().elapsed - before.elapsed
        sink.truncate(os.lseek(sink.fileno(), 0, os.SEEK_CUR))
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in ends:
        raise AssertionError(f"{' '.join(command)} ended with {process.returncode}")
    return Run(used.ru_utime + used.ru_stime, wall, used.ru_maxrss / 1024)


def tshark(capture: Path, form: Sequence[str]) -> list[str]:
    """Make tshark's command: with ports, and messages reassembled."""
    ports = sorted({PORT, *(port for _, ports in recordings() for port in ports)})
    decode_as = [word for port in ports for word in ("-d", f"tcp.port=={port},kafka")]
    order = ["-o", "tcp.reassemble_out_of_order:TRUE"]
    return ["tshark", "-r", str(capture), *decode_as, *order, "-Y", "kafka", *form]


def ours(*arguments: str | Path, verb: str = "decode") -> list[str]:
    """Make kafkawire's command."""
    return [sys.executable, "-m", "kafkawire_cli.main", verb, *map(str, arguments)]


def tshark_fields(capture: Path) -> list[str]:
    """Make the command of tshark that prints FIELDS."""
    return tshark(
        capture, ["-T", "fields", *(w for field in FIELDS.split() for w in ("-e", field))]
    )


def commands(capture: Path, folder: Path) -> dict[str, list[list[str]]]:
    """Name the contenders and their commands, which run one after the other."""
    tables = [word for table in TABLES for word in ("--table", table)] + ["-o"]
    return {
        "kafkawire jsonl": [ours(capture, "--format", "jsonl", "--records")],
        "kafkawire tables": [ours(capture, *tables, folder)],
        "kafkawire snappy": [ours(capture, *tables, folder, "--compression", "snappy")],
        "kafkawire arrow": [ours(capture, *tables, folder / "{table}.arrow")],
        "tshark fields": [tshark_fields(capture)],
        "tshark json": [tshark(capture, ["-T", "json"])],
        "tshark json, kafka only": [tshark(capture, ["-T", "json", "-J", "kafka"])],
    }


FIELDS_OF: Final = ("tshark fields",)
ALL_OF: Final = ("tshark json", "tshark json, kafka only")
PAIRS: Final = (
    ("pcap to JSON lines vs -T fields", "kafkawire jsonl", FIELDS_OF),
    ("pcap to tables vs -T fields", "kafkawire tables", FIELDS_OF),
    ("pcap to tables, snappy, vs -T fields", "kafkawire snappy", FIELDS_OF),
    ("pcap to Arrow files vs -T fields", "kafkawire arrow", FIELDS_OF),
    ("pcap to JSON lines vs -T json", "kafkawire jsonl", ALL_OF),
    ("pcap to tables vs -T json", "kafkawire tables", ALL_OF),
)
"""Suite -> contenders with the same work, kafkawire first."""


def pieces(traffic: str, size: int, folder: Path, seed: int = 1) -> Iterator[bytes]:
    """Make a capture of a kind of traffic; with another seed, varied traffic is another."""
    if traffic == "varied":
        return varied.capture(size, seed)
    if traffic == "bulk":
        path = folder / "bulk.pcap"
        return grown([recorded(path if path.exists() else record(path))], size)
    return grown([recorded(path) for path, _ in recordings()], size)


def run_size(
    traffic: str, megabytes: int, rounds: int, folder: Path, without: Sequence[str] = ()
) -> list[Figure]:
    """Measure a capture of a size."""
    capture = folder / "capture.pcap"
    with capture.open("wb", buffering=1 << 20) as out:
        for piece in pieces(traffic, megabytes * 10**6, folder):
            out.write(piece)
    size = capture.stat().st_size / 1e6
    contenders = commands(capture, folder)
    if shutil.which("tshark") is None:
        contenders = {name: each for name, each in contenders.items() if name[0] == "k"}
    contenders = {name: each for name, each in contenders.items() if name not in without}
    taken: dict[str, list[Run]] = {name: [] for name in contenders}
    out_file = folder / "out"
    messages = 0
    for turn in range(rounds):
        for name in rotated(contenders, turn):
            runs = [measured(command, out_file) for command in contenders[name]]
            taken[name].append(
                Run(
                    sum(run.cpu for run in runs),
                    sum(run.wall for run in runs),
                    max(run.peak for run in runs),
                )
            )
            if name == "kafkawire jsonl":
                with out_file.open("rb") as lines:
                    messages = sum(1 for _ in lines)
    case = f"{traffic}, {size:.0f} MB, {messages} rows"
    figures = []
    for suite, first, others in PAIRS:
        for name in (first, *others):
            if name in taken:
                cpu = [run.cpu for run in taken[name]]
                figures.append(figure(suite, case, name, "s", cpu))
    for name, runs in taken.items():
        figures.append(figure("pcap to rows: memory", case, name, "MiB", [r.peak for r in runs]))
        rate = [size / run.cpu for run in runs]
        figures.append(figure("pcap to rows: rate", case, name, "MB/s", rate))
        each_second = [messages / run.cpu / 1000 for run in runs]
        suite = "pcap to rows: thousand messages/s"
        figures.append(figure(suite, case, name, "k/s", each_second))
    return figures


SMALL: Final = 1.5
LARGE: Final = 7.0
"""Megabytes of the two captures whose difference gives the cost of a megabyte."""


def run_each(rounds: int) -> list[Figure]:
    """Measure each recording by itself."""
    figures: list[Figure] = []
    for path, _ in recordings():
        with tempfile.TemporaryDirectory(prefix="kafkawire-pipeline-") as folder:
            taken = _of_a_megabyte(path, rounds, Path(folder))
        for name, spread in taken.items():
            figures.append(figure("a MB of each recording", path.stem, name, "s", spread))
    return figures


def _of_a_megabyte(path: Path, rounds: int, folder: Path) -> dict[str, list[float]]:
    small, large = folder / "small.pcap", folder / "large.pcap"
    for capture, megabytes in ((small, SMALL), (large, LARGE)):
        capture.write_bytes(b"".join(grown([recorded(path)], int(megabytes * 10**6))))
    more = (large.stat().st_size - small.stat().st_size) / 1e6
    pairs = zip(commands(small, folder).items(), commands(large, folder).values(), strict=True)
    contenders = [
        (name, least, most)
        for (name, least), most in pairs
        if name[0] == "k" or shutil.which("tshark") is not None
    ]
    taken: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, least, most in contenders:
            before, after = (
                sum(measured(command, folder / "out").cpu for command in each)
                for each in (least, most)
            )
            taken.setdefault(name, []).append((after - before) / more)
    return taken


def run(
    rounds: int,
    sizes: Sequence[int] = (MEGABYTES,),
    traffic: Sequence[str] = TRAFFIC,
    without: Sequence[str] = (),
) -> list[Figure]:
    """Measure captures of the given sizes, in MB."""
    figures: list[Figure] = []
    for kind in traffic:
        for megabytes in sizes:
            with tempfile.TemporaryDirectory(prefix="kafkawire-pipeline-") as folder:
                figures += run_size(kind, megabytes, rounds, Path(folder), without)
    return figures


def main() -> None:
    """Print the tables and write the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks.pipeline", description=__doc__)
    parser.add_argument("--traffic", choices=TRAFFIC, nargs="+", default=list(TRAFFIC))
    parser.add_argument("--megabytes", type=int, nargs="+", default=[MEGABYTES])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without", nargs="+", default=[], help="contenders that sit it out")
    parser.add_argument("--each", action="store_true", help="each recording by itself")
    chosen = parser.parse_args()
    if chosen.each:
        figures = run_each(chosen.rounds)
    else:
        figures = run(chosen.rounds, chosen.megabytes, chosen.traffic, chosen.without)
    print(report.tables(figures))
    print(f"\n{report.save(figures)}")


if __name__ == "__main__":
    main()
