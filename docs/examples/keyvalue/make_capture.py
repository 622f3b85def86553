"""Writes keyvalue.pcap: a client of the key-value protocol and its server, in one connection."""

import struct

from keyvalue.messages.document import Document
from keyvalue.messages.get_request import GetRequest
from keyvalue.messages.get_response import GetResponse
from keyvalue.messages.hello_request import HelloRequest
from keyvalue.messages.hello_response import HelloResponse
from keyvalue.messages.put_request import Entry, PutRequest
from keyvalue.messages.put_response import PutResponse

from kafkawire import Registry

DOCUMENT = (1).to_bytes(2, "big") + Document(title="Notes", tags=["a", "b"], text="Hi!").encode(1)
EXCHANGES = [
    (HelloRequest(software="kv 1.2"), HelloResponse(store="demo", newest=1), 0),
    (
        PutRequest(
            bucket="notes",
            entries=[
                Entry(key="k1", content_type="text", value=b"plain"),
                Entry(key="k2", content_type="document", value=DOCUMENT, ttl_ms=60_000),
            ],
        ),
        PutResponse(revision=7),
        1,
    ),
    (
        GetRequest(bucket="notes", key="k2", revision=7),
        GetResponse(revision=7, content_type="document", value=DOCUMENT),
        1,
    ),
    (GetRequest(bucket="notes", key="k9"), GetResponse(revision=-1), 0),
]
CLIENT, SERVER = (bytes([10, 0, 0, 1]), 50_000), (bytes([10, 0, 0, 2]), 7_700)
SYN, ACK, FIN = 2, 16, 1


def packet(source, target, sequence, acknowledged, flags, data=b""):
    """Make an IPv4 packet with a TCP segment."""
    tcp = struct.pack(
        ">HHIIBBHHH", source[1], target[1], sequence, acknowledged, 5 << 4, flags, 65535, 0, 0
    )
    size = 20 + len(tcp) + len(data)
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, size, 0, 0, 64, 6, 0, source[0], target[0])
    return ip + tcp + data


def packets():
    """Yield the packets of the connection."""
    registry = Registry("keyvalue.messages")
    sent, received = 1, 1
    yield packet(CLIENT, SERVER, 0, 0, SYN)
    yield packet(SERVER, CLIENT, 0, 1, SYN | ACK)
    for number, (request, response, version) in enumerate(EXCHANGES):
        client_id = "demo" if version else None  # header version 0 has no client id
        data = registry.encode_frame(request, version, number, client_id=client_id)
        yield packet(CLIENT, SERVER, sent, received, ACK, data)
        sent += len(data)
        data = registry.encode_frame(response, version, number)
        yield packet(SERVER, CLIENT, received, sent, ACK, data)
        received += len(data)
    yield packet(CLIENT, SERVER, sent, received, FIN | ACK)


with open("keyvalue.pcap", "wb") as file:
    file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))  # 101: IP packets
    for at, data in enumerate(packets()):
        file.write(struct.pack("<IIII", 1_700_000_000, at * 1000, len(data), len(data)) + data)
