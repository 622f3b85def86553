"""System calls that strace prints: what a process sent and received on its connections.

`strace -f -tt -e trace=network,read,write,readv,writev,close -s 65535 -xx -p PID`; with `-yy` the
addresses of both ends are known. Where `-s` is too small, the rest of a string is lost in the
connection. Descriptors are those of one process.

    1234 10:00:00.000001 sendto(7, "\\x00\\x00\\x00\\x24"..., 40, 0, NULL, 0) = 40
    name(descriptor, strings, ...) = bytes
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, NamedTuple

from .conversation import UNKNOWN, Address, Conversation, Endpoint
from .escapes import unescaped
from .splitter import PrintedPacket, Splitter
from .times import Times

MAX_LINE: Final = 1 << 22
"""Bytes of a line at most: a string of 1 MiB, with four characters for each byte."""
MAX_OPEN: Final = 1 << 14
"""Descriptors at most of which is known what they are."""
MAX_BEGUN: Final = 1 << 24
"""Characters at most of calls that have begun, of all threads."""
MAX_ADDRESS: Final = 1 << 9
"""Characters of a call, from its start, in which an address, or a new descriptor, is sought."""

THREAD: Final = re.compile(r"\[pid +(?P<pid>\d{1,10})\] ")
BEGIN: Final = re.compile(
    r"(?:(?P<pid>\d{1,10}) +)?(?:(?P<time>\d\d:\d\d:\d\d(?:\.\d{3,9})?|\d{9,10}\.\d{3,9}) )?"
    r"(?: *\d{1,6}\.\d{3,9} )?(?P<call>.*)",
    re.DOTALL,
)
"""A line: the thread, the time (since the line before it with `-r`, which is of no use), a call."""
_FILE: Final = r"(?:<(?P<file>(?:->|[^>]){0,200}+)>)?"
CALL: Final = re.compile(rf"(?P<name>\w{{1,40}})\((?P<fd>\d{{1,10}}){_FILE}(?P<rest>.*)", re.DOTALL)
RESULT: Final = re.compile(rf"(?P<result>-?\d{{1,18}}){_FILE}")
UNFINISHED: Final = "<unfinished ...>"
RESUMED: Final = re.compile(r"<\.\.\. (?P<name>\w{1,40}) resumed>,? ?(?P<rest>.*)", re.DOTALL)
STRING: Final = re.compile(
    r'"((?:[^"\\]|\\.)*+)(?:"(\.\.\.)?(?:, iov_len=(\d{1,18}))?|\\?\Z)', re.DOTALL
)
HEX: Final = re.compile(r"(?:\\x[0-9a-f]{2})*")
CREATED: Final = re.compile(
    r"socket\((?:AF|PF)_(?P<family>\w+), SOCK_(?P<type>[A-Z]+).*\) += (?P<fd>\d{1,10})\b.*"
)
PAIR: Final = re.compile(r"(?:socketpair|pipe2?)\(.*\[(\d{1,10}), (\d{1,10})\].*")
BORN: Final = re.compile(r"(?P<how>(?:clone3?|v?fork)\(.*)\) += (?P<pid>\d{1,10})\b.*")
BEARS: Final = re.compile(r"(?:clone3?|v?fork)\(")
ATTACHED: Final = re.compile(r"strace: Process (?P<pid>\d{1,10}) attached")
"""What is printed of a new thread or process, perhaps before the call that starts it returns."""
SHARED: Final = "CLONE_FILES"
"""The flag of a thread: its descriptors are those of its process."""
SOCKET: Final = re.compile(
    r"TCP(?:v6)?:\[(?P<here>\S+):(?P<port>\d{1,5})->(?P<there>\S+):(?P<to>\d{1,5})\]"
)
ADDRESS: Final = re.compile(
    r"sin6?_port=htons\((?P<port>\d{1,5})\)"
    r'.*?(?:inet_addr\(|inet_pton\(AF_INET6, )"(?P<host>[^"]*)"'
)
_THREAD: Final = r"(?:\[pid +\d{1,10}\] |\d{1,10} +)?"
_TIME: Final = r"(?:\d\d:\d\d:\d\d(?:\.\d{1,9})?|\d{9,10}\.\d{1,9}) "
STARTS: Final = re.compile(
    rf"strace: Process \d+ attached|{_THREAD}{_TIME}\w+\(|{_THREAD}<\.\.\. \w+ resumed>|{_THREAD}"
    r"(?:(?:connect|accept4?|bind|listen|read|readv|write|writev|sendto|sendmsg|recvfrom|recvmsg|"
    r"close|fcntl|[gs]etsockopt|getpeername|getsockname|epoll_\w+|shutdown)\(\d|"
    r"execve\(\"|socket(?:pair)?\((?:AF|PF)_|p?poll\(\[|futex\(0x|clone3?\(|restart_syscall\()"
)
"""How what strace prints begins."""

SENT: Final = frozenset({"write", "writev", "sendto", "sendmsg"})
RECEIVED: Final = frozenset({"read", "readv", "recvfrom", "recvmsg"})
OF_SOCKETS: Final = frozenset({"sendto", "sendmsg", "recvfrom", "recvmsg"})
NOTHING: Final = (
    "no bytes of connections: strace -f -tt -e trace=network,read,write,readv,writev,close -s 65535"
)


class _Open(NamedTuple):
    """A descriptor. conversation: None if it is none of TCP. ours: 0 if the process connected."""

    conversation: Conversation | None
    ours: int


def is_traced(head: bytes) -> bool:
    """Whether text begins as strace prints."""
    return STARTS.match(head[:MAX_LINE].decode("latin-1").lstrip("\n")) is not None


class TracedCalls(Splitter):
    """Splits what strace prints into packets."""

    def __init__(self) -> None:
        super().__init__(MAX_LINE)
        self._times = Times()
        self._begun: dict[str, str] = {}
        self._begun_size = 0
        self._processes: dict[str, str] = {}  # thread -> its process, unless that is the first one
        self._bearing = "", ""  # a process, and its call that starts another one
        self._open: dict[str, _Open] = {}
        self._bound: dict[str, Endpoint] = {}
        self._count = 0
        self._has_bytes = False

    def _end(self, _: int) -> Iterator[PrintedPacket]:
        if not self._has_bytes:
            yield PrintedPacket(b"", None, None, NOTHING, 0)

    def _handle(self, position: int, text: str) -> Iterator[PrintedPacket]:
        text = text.rstrip()
        thread = THREAD.match(text)
        begin = BEGIN.match(text, thread.end() if thread else 0)
        assert begin is not None  # it matches any text
        time_ns = self._times.read(f"{begin['time']} ")
        pid, call = (thread or begin)["pid"] or "", begin["call"]
        if call.endswith(UNFINISHED):
            if BEARS.match(call):
                self._bearing = self._processes.get(pid, ""), call[:MAX_ADDRESS]
            self._begin(pid, call.removesuffix(UNFINISHED))
        elif (resumed := RESUMED.fullmatch(call)) is None:
            yield from self._call(pid, call, time_ns, position)
        elif first := self._begin(pid, ""):
            yield from self._call(pid, first + resumed["rest"], time_ns, position)
        elif resumed["name"] in SENT | RECEIVED:
            problem = f"the line with the beginning of a call is missing: {resumed['name']}"
            yield PrintedPacket(b"", None, None, problem, position)

    def _begin(self, pid: str, call: str) -> str:
        """Hold the beginning of a call of a thread; return what was held of it before."""
        before = self._begun.pop(pid, "")
        self._begun_size -= len(before)
        if call and self._begun_size + len(call) <= MAX_BEGUN:
            self._begun[pid] = call
            self._begun_size += len(call)
        return before

    def _call(
        self, pid: str, text: str, time_ns: int | None, position: int
    ) -> Iterator[PrintedPacket]:
        process = self._processes.get(pid, "")
        self._created(process, text[:MAX_ADDRESS])
        begin, _, end = text.rpartition(" = ")
        call, result = CALL.fullmatch(begin), RESULT.match(end)
        if call is None or result is None:
            return
        name, count = call["name"], int(result["result"])
        fd = process + call["fd"]
        address = ADDRESS.search(begin[:MAX_ADDRESS])
        if name == "connect" and address and not (call["file"] or "").startswith("TCP"):
            if not self._is_other(fd):
                self._add(fd, _endpoint(address, 1), 0, opened=True)
        elif name in {"accept", "accept4"} and address and count >= 0 and not result["file"]:
            own = self._bound.get(fd, UNKNOWN[1])
            self._add(f"{process}{count}", _endpoint(address, 0), 1, own, opened=True)
        elif name in {"bind", "getsockname"} and address:
            self._bind(name, fd, _endpoint(address, 1))
        elif name == "close":
            self._open.pop(fd, None)
        elif name in SENT | RECEIVED and count > 0:
            yield from self._moved(call, fd, count, time_ns, position)

    def _bind(self, name: str, fd: str, own: Endpoint) -> None:
        """Note the address of a socket that listens; what was bound to port 0 asks for its port."""
        if fd in self._bound or (name == "bind" and len(self._bound) < MAX_OPEN):
            self._bound[fd] = own

    def _created(self, process: str, text: str) -> None:
        """Note new threads and processes, and descriptors of what is not a connection of TCP."""
        if match := CREATED.fullmatch(text):
            is_tcp = match["family"].startswith("INET") and match["type"] == "STREAM"
            self._hold(process + match["fd"], _Open(None, 0), forget=is_tcp)
        elif match := PAIR.fullmatch(text):
            for fd in match.groups():
                self._hold(process + fd, _Open(None, 0))
        elif match := BORN.fullmatch(text):
            self._born(match["pid"], process, match["how"])
        elif match := ATTACHED.fullmatch(text):
            self._born(match["pid"], *self._bearing)

    def _born(self, pid: str, parent: str, how: str) -> None:
        """Note a thread, which shares the descriptors of its process, or a new process."""
        if how and len(self._processes) < MAX_OPEN:
            self._processes[pid] = parent if SHARED in how else f"{pid}/"

    def _is_other(self, fd: str) -> bool:
        held = self._open.get(fd)
        return held is not None and held.conversation is None

    def _hold(self, fd: str, held: _Open, forget: bool = False) -> None:
        """Note what a descriptor is, in place of what it was; or only forget that."""
        self._open.pop(fd, None)
        if len(self._open) >= MAX_OPEN:
            del self._open[next(iter(self._open))]
        if not forget:
            self._open[fd] = held

    def _add(
        self, fd: str, peer: Endpoint, ours: int, own: Endpoint | None = None, opened: bool = False
    ) -> _Open:
        self._count += 1
        if own is None:
            own = Endpoint(_nowhere(peer.address, ours), self._count & 0xFFFF)
        sides = (own, peer) if ours == 0 else (peer, own)
        held = _Open(Conversation(self._count, sides, opened=opened), ours)
        self._hold(fd, held)
        return held

    def _moved(
        self, call: re.Match[str], fd: str, count: int, time_ns: int | None, position: int
    ) -> Iterator[PrintedPacket]:
        """Return the packets of bytes that were sent or received."""
        name = call["name"]
        parts = list(_parts(call["rest"], count))
        held = self._descriptor(name, fd, call["file"] or "", parts)
        if held is None or held.conversation is None:
            return
        side = held.ours if name in SENT else 1 - held.ours
        for data, size in parts:
            yield from held.conversation.send(side, data, time_ns, position)
            held.conversation.lose(side, size - len(data))
            self._has_bytes = self._has_bytes or bool(data)

    def _descriptor(
        self, name: str, fd: str, socket: str, parts: list[tuple[bytes, int]]
    ) -> _Open | None:
        """Return what a descriptor is; None if nothing is known of it."""
        if match := SOCKET.fullmatch(socket):
            fd = f"{fd.rpartition('/')[2]} {socket}"  # several processes may have it
            if held := self._open.get(fd):
                return held
            own = Endpoint(_address(match["here"], 0), int(match["port"]) & 0xFFFF)
            peer = Endpoint(_address(match["there"], 1), int(match["to"]) & 0xFFFF)
            return self._add(fd, peer, 0, own)
        if socket and not socket.startswith("socket:"):
            return None
        if fd in self._open or not parts:
            return self._open.get(fd)
        may_be = name in OF_SOCKETS or _may_be_frame(parts[0][0])
        return self._add(fd, Endpoint(IPv4Address(2), 2), 0) if may_be else None


def _parts(rest: str, count: int) -> Iterator[tuple[bytes, int]]:
    """Return the strings of a call, of which `count` bytes count, and how many each stands for."""
    for match in STRING.finditer(rest):
        text, is_cut, size = match.groups()
        data = _bytes(text)
        whole = int(size) if size else count if is_cut else len(data)
        part = min(count, whole)
        count -= part
        if part:
            yield data[:part], part


def _bytes(text: str) -> bytes:
    if HEX.fullmatch(text):
        return bytes.fromhex(text.replace("\\x", ""))
    return unescaped(text).encode("latin-1", "replace")


def _may_be_frame(data: bytes) -> bool:
    """Whether bytes may begin a frame: those of a size that is not huge."""
    return data[:1] == b"\0"


def _endpoint(match: re.Match[str], side: int) -> Endpoint:
    return Endpoint(_address(unescaped(match["host"]), side), int(match["port"]) & 0xFFFF)


def _address(host: str, side: int) -> Address:
    try:
        address = ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return IPv4Address(side + 1)
    return getattr(address, "ipv4_mapped", None) or address


def _nowhere(other: Address, side: int) -> Address:
    """Return an address of no host, of the version of another one: a discarded one in IPv6."""
    if other.version == 4:
        return IPv4Address(side + 1)
    return IPv6Address((0x0100 << 112) + side + 1)
