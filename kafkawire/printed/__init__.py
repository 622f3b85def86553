"""Packets, and streams, that tools print as text: what `kafkawire.capture` reads as captures.

    text --> Splitter --> PrintedPacket(data, link type, time | problem)
             PrintedPackets    tcpdump -X, tshark -x
             FollowedStream    Follow TCP Stream: hex dump, raw, YAML, C arrays
             TracedCalls       strace

Importing it imports little: commands recognise their inputs by it.
"""
