"""`kafkawire top`: live rates of requests, on a screen or as lines."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final, NamedTuple

import typer

from ...input.captures.live import Ticker, capture_command, captured, keyboard, live
from ...input.filters import NOTHING_MATCHES, FilterOption, parse_filter
from ...input.inputs import InputError
from ...input.options import BrokerOption, KeyLogOption, PortOption, TunnelOption
from ...input.rule_options import UNCHANGED, RuleOptions
from ...input.sources import INTERRUPTED, Known, known, readable, refuse, sources
from ...notes import print_note

if TYPE_CHECKING:
    from kafkawire.capture.filters import Filter
    from kafkawire.reports.diagnosis.diagnosis import Diagnosis
    from kafkawire.reports.reading import Reading
    from kafkawire.reports.windows import Windows

    from ...input.captures.followed import FollowedFile
    from ...input.captures.replay import Replay

SCREEN_SECONDS: Final = 10
"""Seconds that the rates on the screen cover."""


def top(  # noqa: PLR0913 - options of the verb
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="Pipe or capture file; - for stdin.")
    ] = None,
    interface: Annotated[
        str | None,
        typer.Option(
            "--interface", "-i", metavar="NAME", help="Capture here, by tcpdump or dumpcap."
        ),
    ] = None,
    interval: Annotated[
        float, typer.Option(min=0.1, max=3600, metavar="SECONDS", help="Time between updates.")
    ] = 1.0,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="Wait for more packets at the end of a file that grows, is rotated or truncated.",
        ),
    ] = False,
    speed: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=1e6,
            metavar="N",
            help="Replay a finished file, N seconds of it per second.",
        ),
    ] = None,
    rules: RuleOptions = UNCHANGED,
    wanted: FilterOption = None,
    port: PortOption = None,
    broker: BrokerOption = None,
    keylog: KeyLogOption = None,
    tunnel: TunnelOption = None,
) -> None:
    """Show live rates: requests, bytes, latency, errors.

    \b
    tcpdump -i any -U -w - tcp port 9092 | kafkawire top -
    kafkawire top -i eth0 --port 9092
    kafkawire top -i eth0 --interval 10 > rates.txt
    kafkawire top growing.pcap --follow
    kafkawire top trace.pcap --speed 10

    Keys: a, c, t, g, b show APIs, clients, topics, groups, brokers; d shows what is wrong, as
    `kafkawire diagnose` does; r, s, l, e, f sort by requests, size, latency, errors, requests in
    flight; q quits. Without a terminal, a line is printed at each update, of a file one line
    without --follow and --speed.
    """
    if (file is None) == (interface is None):
        raise typer.BadParameter("expected - or a file, or else an --interface", param_hint="FILE")
    mode = _mode(file, follow=follow, speed=speed)
    brokers = known(port, broker, keylog, tunnels=tunnel)
    where = parse_filter(wanted)
    try:
        if interface is None:
            with _opened(file or "-", follow=follow) as stream:
                _watch(stream, brokers, where, interval, mode, rules)
        else:
            with captured(capture_command(interface, port)) as stream:
                _watch(stream, brokers, where, interval, mode, rules)
    except InputError as error:
        refuse(error)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


class _Mode(NamedTuple):
    """How a file is read: as it grows, or replayed. speed: None without a replay."""

    follow: bool
    speed: float | None


def _mode(file: str | None, *, follow: bool, speed: float | None) -> _Mode:
    """Check the options for files."""
    option = "--follow" if follow else "--speed"
    if follow and speed is not None:
        raise typer.BadParameter("not allowed together", param_hint="--follow, --speed")
    path = Path(file or "-")
    is_stream = str(path) == "-" or (os.path.exists(path) and not os.path.isfile(path))
    if (follow or speed is not None) and is_stream:
        raise typer.BadParameter("only allowed with a capture file", param_hint=option)
    return _Mode(follow, speed)


@contextmanager
def _opened(name: str, *, follow: bool) -> Iterator[BinaryIO | FollowedFile]:
    (source,) = sources([name]).captures
    if isinstance(source, Path):
        from ...input.captures.followed import FollowedFile

        opened = FollowedFile(source) if follow else source.open("rb")
        with closing(opened):
            yield opened
    else:
        yield source


def _watch(
    stream: BinaryIO | FollowedFile,
    brokers: Known,
    where: Filter | None,
    interval: float,
    mode: _Mode,
    rules: RuleOptions,
) -> None:
    """Read packets until they end or the user quits, and show rates meanwhile."""
    from kafkawire.capture.multifile import Traffic
    from kafkawire.reports.reading import Reading
    from kafkawire.reports.windows import Windows

    from ...input.captures.progress import Progress, note_without_messages
    from ...input.captures.replay import Replay, ReplayedWindows

    with keyboard() as keys:
        watch = Progress(1)
        covered = interval if mode.speed is None else interval * mode.speed
        seconds = max(SCREEN_SECONDS if keys is not None else 1, round(covered))
        shown = _Shown(interval, keys)
        traffic = Traffic(
            [live(stream, shown.ticker, follow=mode.follow)],
            brokers.ports,
            brokers=brokers.addresses,
            watch=watch,
            keylog=brokers.keylog,
            tunnels=brokers.tunnels,
        )
        captures = Reading(traffic, watch, where=where)
        if mode.speed is None:
            windows = Windows(captures, seconds)
        else:
            replay = shown.replay = Replay(mode.speed, monotonic, shown.ticker.pause)
            windows = ReplayedWindows(captures, seconds, replay)
        diagnosis = None if keys is None else _diagnosis(captures, rules)
        with shown.of(windows, diagnosis), readable(["-"]):
            captures.read(windows, *([] if diagnosis is None else diagnosis.all_collectors))
    if not watch.packets and not shown.ticker.quit:
        print_note("no packets")
    elif watch.packets and not traffic.has_messages:
        note_without_messages(traffic, watch.packets)
    elif where is not None and not captures.matched:
        print_note(f"{NOTHING_MATCHES}{captures.hint}")


def _diagnosis(captures: Reading, rules: RuleOptions) -> Diagnosis:
    """Diagnose what is read, for the screen."""
    from kafkawire.reports.diagnosis.rule import Scene
    from kafkawire.reports.readiness import dropped_by_kafka

    return rules.diagnosis(Scene.of(captures, dropped_by_kafka()))


class _Shown:
    """Shows rates: on a screen if there are keys, else as lines."""

    def __init__(self, interval: float, keys: int | None) -> None:
        self._draw: Callable[[], None] = lambda: None
        self._press: Callable[[str], bool] = lambda _: True
        self._keys = keys
        self.replay: Replay | None = None
        self.ticker = Ticker(
            interval, lambda: self._draw(), keys, on_key=lambda key: self._press(key)
        )

    @contextmanager
    def of(self, windows: Windows, diagnosis: Diagnosis | None) -> Iterator[None]:
        """Show these rates, and the last ones at the end."""
        from ...render import live as render

        def now() -> int:
            replay = self.replay
            quiet = monotonic() - self.ticker.data_at if replay is None else replay.since()
            return windows.last_ns + round(quiet * 1e9)

        heading = [f"{render.HEADING}\n"]

        def print_line() -> None:
            print("".join(heading) + render.line(windows, now()), flush=True)
            heading.clear()

        if self._keys is None:
            self._draw = print_line
            yield
            print_line()
            return
        screen = render.Screen(windows, lambda: [] if diagnosis is None else diagnosis.findings)

        def draw() -> None:
            size = render.Size(*shutil.get_terminal_size())
            sys.stdout.write(screen.text(now(), size))
            sys.stdout.flush()

        self._draw, self._press = draw, screen.press
        sys.stdout.write(render.ENTER)
        try:
            draw()
            yield
        finally:
            sys.stdout.write(render.LEAVE)
            sys.stdout.flush()
        print_line()
