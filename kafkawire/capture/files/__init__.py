"""Capture files: pcap and pcapng, compressed or not, in blocks of packets."""
