"""Proxies in front of Kafka: PROXY protocol, SOCKS5 and HTTP CONNECT, before TLS or frames."""
