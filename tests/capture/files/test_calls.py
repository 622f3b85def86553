"""What strace prints about connections is read as the connections that they were."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkawire.capture import Status, decode_capture
from kafkawire.printed import splitter_of
from kafkawire.printed.calls import MAX_BEGUN, MAX_LINE, MAX_OPEN, TracedCalls
from tests.capture.printing import BROKER_PORT, KCAT, Sent, streams
from tests.cli.reports import run

Line = Callable[[int, Sent], str]


def hexadecimal(data: bytes) -> str:
    """Write a string as `strace -xx` does."""
    return "".join(f"\\x{byte:02x}" for byte in data)


def octal(data: bytes) -> str:
    """Write a string as strace does."""
    out = ""
    for position, byte in enumerate(data):
        follows = data[position + 1 : position + 2]
        if byte in b'"\\':
            out += f"\\{chr(byte)}"
        elif 0x20 <= byte < 0x7F:
            out += chr(byte)
        else:
            out += f"\\{byte:03o}" if follows.isdigit() else f"\\{byte:o}"
    return out


def clock(time_ns: int) -> str:
    """Write a time as `strace -tt` does."""
    moment = datetime.fromtimestamp(time_ns // 10**9, UTC)
    return f"{moment:%H:%M:%S}.{time_ns % 10**9 // 1000:06}"


def epoch(time_ns: int) -> str:
    """Write a time as `strace -ttt` does."""
    return f"{time_ns // 10**9}.{time_ns % 10**9 // 1000:06}"


def ordered() -> Iterator[tuple[int, int, Sent]]:
    """Yield the client's port, a descriptor, and what was sent, in the order of time."""
    sent = [(port, fd, each) for fd, (port, all) in enumerate(streams().items(), 7) for each in all]
    yield from sorted(sent, key=lambda each: each[2].time_ns)


def opened(first: str, call: str) -> list[str]:
    """Print the calls that open all connections: `call` with its port and descriptor."""
    return [first + call.format(port=port, fd=fd) for fd, port in enumerate(streams(), 7)]


CONNECT = (
    "connect({fd}, {{sa_family=AF_INET, sin_port=htons(19092), "
    'sin_addr=inet_addr("127.0.0.1")}}, 16) = -1 EINPROGRESS (Operation now in progress)'
)
BIND = (
    'bind(3, {sa_family=AF_INET, sin_port=htons(19092), sin_addr=inet_addr("127.0.0.1")}, 16) = 0'
)
ACCEPT = (
    "accept4(3, {{sa_family=AF_INET, sin_port=htons({port}), "
    'sin_addr=inet_addr("127.0.0.1")}}, [16], SOCK_CLOEXEC) = {fd}'
)


def client() -> str:
    """A client: `strace -f -tt -xx`, with calls of other threads between halves."""
    lines = opened("12 10:00:00.000000 ", CONNECT)
    for _, fd, sent in ordered():
        begin, data = f"12 {clock(sent.time_ns)} ", hexadecimal(sent.data)
        size = len(sent.data)
        if sent.side == 0:
            lines.append(f'{begin}sendto({fd}, "{data}", {size}, 0, NULL, 0) = {size}')
        else:
            lines += [
                f"12 10:00:00.000000 recvfrom({fd},  <unfinished ...>",
                "13 10:00:00.000000 close(99) = 0",
                f'{begin}<... recvfrom resumed>"{data}", 4096, 0, NULL, NULL) = {size}',
            ]
    return "\n".join(lines)


def messages() -> str:
    """A client: `strace -f -tt`, with messages of several strings, sent in part."""
    lines = opened("[pid 12] 10:00:00.000000 ", CONNECT)
    for _, fd, sent in ordered():
        half = len(sent.data) // 2
        size = len(sent.data) - half + (7 if sent.side == 0 else 4096)
        name = "sendmsg" if sent.side == 0 else "recvmsg"
        rest = sent.data[half:] + b"unsent!" * (sent.side == 0)
        parts = (
            f'{{iov_base="{octal(sent.data[:half])}", iov_len={half}}}, '
            f'{{iov_base="{octal(rest)}", iov_len={size}}}'
        )
        lines.append(
            f"[pid 12] {clock(sent.time_ns)} {name}({fd}, {{msg_name=NULL, msg_namelen=0, "
            f"msg_iov=[{parts}], msg_iovlen=2, msg_flags=0}}, MSG_DONTWAIT) = {len(sent.data)}"
        )
    return "\n".join(lines)


def with_addresses() -> str:
    """A client: `strace -yy -ttt -T`."""
    lines = []
    for port, fd, sent in ordered():
        name = "write" if sent.side == 0 else "read"
        ends = f"TCP:[127.0.0.1:{port}->127.0.0.1:{BROKER_PORT}]"
        call = f'{name}({fd}<{ends}>, "{octal(sent.data)}", 9999)'
        lines.append(f"{epoch(sent.time_ns)} {call} = {len(sent.data)} <0.000012>")
    return "\n".join(lines)


def broker() -> str:
    """A broker: `strace -f -tt -xx`."""
    lines = [f"12 10:00:00.000000 {BIND}", *opened("12 10:00:00.000000 ", ACCEPT)]
    for _, fd, sent in ordered():
        name = "read" if sent.side == 0 else "write"
        call = f'{name}({fd}, "{hexadecimal(sent.data)}", 9999)'
        lines.append(f"12 {clock(sent.time_ns)} {call} = {len(sent.data)}")
    return "\n".join(lines)


def broker_of_a_test() -> str:
    """A broker that was bound to port 0, and asked for its port."""
    port = BIND.replace("bind", "getsockname").replace(", 16)", ", [128 => 16])")
    first, rest = broker().replace(BIND, BIND.replace("19092", "0")).split("\n", 1)
    return f"{first}\n12 10:00:00.000000 {port}\n{rest}"


FORK = "clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD"
THREAD = (
    "clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD, stack_size=0x7fff00"
)


def processes() -> str:
    """Processes with a connection each, of the same descriptor; every other one has a thread."""
    begin = "10:00:00.000000 "
    lines = []
    for pid, port in enumerate(streams(), 100):
        if pid % 2:
            lines.append(f"12 {begin}{FORK}, child_tidptr=0x7f20) = {pid}")
        else:  # its call returns late
            lines += [f"12 {begin}{FORK} <unfinished ...>", f"strace: Process {pid} attached"]
        lines.append(f"{pid} {begin}{CONNECT.format(fd=7, port=port)}")
        if pid % 2:
            lines.append(
                f"{pid} {begin}{THREAD}}} => {{parent_tid=[{pid + 50}]}}, 88) = {pid + 50}"
            )
        else:
            lines.append(f"12 {begin}<... clone resumed>, child_tidptr=0x7f20) = {pid}")
    for _, fd, sent in ordered():
        size = len(sent.data)
        name = "sendto" if sent.side == 0 else "recvfrom"
        pid = fd - 7 + 100 + 50 * (fd % 2 == 0)
        call = f'{name}(7, "{hexadecimal(sent.data)}", {size}, 0, NULL, 0) = {size}'
        lines.append(f"{pid} {clock(sent.time_ns)} {call}")
    return "\n".join(lines)


TRACED: dict[str, Callable[[], str]] = {
    each.__name__: each
    for each in (client, messages, with_addresses, broker, broker_of_a_test, processes)
}
KNOWN_CLIENTS = {"with_addresses", "broker", "broker_of_a_test"}


def decoded(text: str, tmp_path: Path) -> list[dict[str, Any]]:
    file = tmp_path / "trace.txt"
    file.write_text(text)
    result = run("decode", "--json", file)
    assert (result.exit_code, result.stderr) == (0, "")
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("form", TRACED)
def test_traced_calls_are_the_connections_that_they_were(form: str, tmp_path: Path) -> None:
    kept = ["direction", "api_name", "correlation_id", "client_id", "status", "body", "broker"]
    kept += ["client"] * (form in KNOWN_CLIENTS)
    rows, expected = (
        [{key: row[key] for key in kept} | {"fraction": row["time"][19:26]} for row in each]
        for each in (
            decoded(TRACED[form](), tmp_path),
            map(json.loads, run("decode", "--json", KCAT).stdout.splitlines()),
        )
    )
    order = lambda row: (row["fraction"], row["direction"], row["correlation_id"])  # noqa: E731
    assert sorted(rows, key=order) == sorted(expected, key=order)
    assert "10 Kafka" in run("summary", tmp_path / "trace.txt").stdout


OTHERS = """\
socket(AF_NETLINK, SOCK_RAW|SOCK_CLOEXEC, NETLINK_ROUTE) = 5
recvmsg(5, {msg_iov=[{iov_base="\\0\\0\\0\\1lo", iov_len=4096}], msg_iovlen=1}, 0) = 6
close(5) = 0
socketpair(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC|SOCK_NONBLOCK, 0, [5, 6]) = 0
sendto(6, "\\0", 1, 0, NULL, 0) = 1
socket(AF_INET, SOCK_DGRAM|SOCK_CLOEXEC|SOCK_NONBLOCK, IPPROTO_IP) = 8
connect(8, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("127.0.0.53")}, 16) = 0
sendto(8, "\\0\\1question", 10, MSG_NOSIGNAL, NULL, 0) = 10
read(9</etc/hosts>, "\\0\\0\\0\\4host", 4096) = 8
read(9, "127.0.0.1 localhost", 4096) = 19
"""
FRAME = bytes.fromhex("000000210012000300000001000464656d6f000b6c696272646b61666b6106312e302e3000")


def test_what_is_no_connection_is_passed_over(tmp_path: Path) -> None:
    traced = f'{OTHERS}write(4, "{octal(FRAME)}", 35) = {len(FRAME)}\n'
    [row] = decoded(traced, tmp_path)
    assert (row["api_name"], row["client_id"]) == ("ApiVersions", "demo")


def test_strings_that_are_cut_are_messages_in_part(tmp_path: Path) -> None:
    """`strace` without `-s` prints 32 bytes of each string."""
    lines = opened("", CONNECT)
    for _, fd, sent in ordered():
        name, shown = "write" if sent.side == 0 else "read", sent.data[:32]
        cut = "..." * (len(sent.data) > len(shown))
        call = f'{name}({fd}, "{octal(shown)}"{cut}, 9999)'
        lines.append(f"{call} = {len(sent.data)}")
    file = tmp_path / "trace.txt"
    file.write_text("\n".join(lines))
    cut_rows = [each.row for each in decode_capture(file) if each.row.api_key is not None]
    rows = [each.row for each in decode_capture(KCAT) if each.row.api_key is not None]
    heads = {(each.api_key, each.correlation_id, each.direction) for each in cut_rows}
    assert {each.status for each in cut_rows} == {Status.OK, Status.TRUNCATED}
    assert heads >= {(each.api_key, each.correlation_id, each.direction) for each in rows}


def test_a_trace_without_bytes_says_what_to_do(tmp_path: Path) -> None:
    [row] = decoded("\n".join(opened("", CONNECT)), tmp_path)
    assert row["status"] == "unreadable"
    assert "no bytes of connections: strace -f -tt -e trace=network," in row["error"]


def test_a_trace_is_read_if_the_user_says_that_it_is_text(tmp_path: Path) -> None:
    (tmp_path / "trace.txt").write_text(client())
    said, recognised = (
        run("decode", "--json", *options, tmp_path / "trace.txt").stdout
        for options in (("--input-format", "text"), ())
    )
    assert said == recognised
    assert said


@pytest.mark.parametrize(
    "text",
    ["bytes([0, 0, 0, 36])", "bytearray(b'\\0\\0\\0')", "read the manual", "12 34 56 78", "x(1)"],
)
def test_what_is_no_trace(text: str) -> None:
    assert splitter_of(text.encode()) is None


SAMPLE = (OTHERS + "\n".join([*client().splitlines()[:40], *messages().splitlines()[:20]])).encode()


@given(st.lists(st.integers(0, len(SAMPLE)), max_size=20))
def test_text_is_read_in_any_parts(cuts: list[int]) -> None:
    edges = sorted({0, *cuts, len(SAMPLE)})
    whole, in_parts = TracedCalls(), TracedCalls()
    read = [each for start, end in pairwise(edges) for each in in_parts.feed(SAMPLE[start:end])]
    assert [*read, *in_parts.finish()] == [*whole.feed(SAMPLE), *whole.finish()]
    assert isinstance(splitter_of(SAMPLE), TracedCalls)


@given(st.binary(max_size=60), st.integers(0, len(SAMPLE)))
def test_no_text_makes_it_fail(noise: bytes, at: int) -> None:
    trace = TracedCalls()
    packets = [*trace.feed(SAMPLE[:at] + noise + SAMPLE[at:]), *trace.finish()]
    assert all(len(each.data) < 1 << 16 for each in packets)


MANY = 1 << 19
HOSTILE = {
    "quotes without end": b'write(3, "' + b'\\"' * MANY,
    "results": b"write(3, " + b") = 1 " * MANY + b'"',
    "digits": b"write(3, " + b"9" * MANY + b") = " + b"9" * MANY,
    "addresses": b"connect(3, " + b"sin_port=htons(1)" * MANY,
    "files": b"write(3<" + b"-" * MANY,
    "calls that begin": b"\n".join(
        b"%d write(3,  <unfinished ...>" % pid for pid in range(MANY // 8)
    ),
    "long calls that begin": b"\n".join(
        b'%d write(3, "%s" <unfinished ...>' % (pid, b"x" * MANY) for pid in range(64)
    ),
    "connections": b"\n".join(b'write(%d, "\\0", 1) = 1' % fd for fd in range(MANY // 8)),
    "a long line": b"x" * 3 * MAX_LINE,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_work_and_memory_are_bounded(kind: str) -> None:
    """Each is some megabytes: work that grows with the square of that would take hours."""
    trace = TracedCalls()
    packets = list(trace.feed(HOSTILE[kind] + b"\n" + SAMPLE))
    assert len(packets) > 20
    assert len(trace._open) <= MAX_OPEN
    assert sum(map(len, trace._begun.values())) <= MAX_BEGUN


def test_a_call_whose_beginning_is_missing_is_named() -> None:
    """strace that attaches to a process prints the end of what it waits for."""
    first = b'12 <... recvfrom resumed>"\\0\\0\\0\\4", 4, 0, NULL, NULL) = 4\n'
    [problem, *others] = TracedCalls().feed(first + SAMPLE)
    assert problem.problem == "the line with the beginning of a call is missing: recvfrom"
    assert not any(each.problem for each in others)
