"""URLs of tokens and keys: files, servers, and which are refused."""

from __future__ import annotations

import pytest

from kafkawire.sasl.endpoints import FileEndpoint, HttpEndpoint, endpoint


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("file:///etc/a%20b", FileEndpoint("/etc/a b")),
        ("file://localhost/a", FileEndpoint("/a")),
        ("https://a.example", HttpEndpoint(True, "a.example", 443, "a.example", "/")),
        ("https://a:9/b?c=d#e", HttpEndpoint(True, "a", 9, "a:9", "/b?c=d")),
        ("http://localhost:80/b", HttpEndpoint(False, "localhost", 80, "localhost:80", "/b")),
        ("http://127.8.7.6/", HttpEndpoint(False, "127.8.7.6", 80, "127.8.7.6", "/")),
        ("http://[::1]:1", HttpEndpoint(False, "::1", 1, "[::1]:1", "/")),
    ],
)
def test_urls(url: str, expected: object) -> None:
    assert endpoint(url) == expected


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/etc/keys",
        "file://other/keys",
        "file://",
        "ftp://127.0.0.1/",
        "https://",
        "https://user:secret@a.example/",
        "https://a.example/a b",
        "https://a.example/\x7f",
        "https://a.example:x/",
        "https://[::1/",
        "http://a.example/secret",
        "http://localhost.example/",
        "http://0.0.0.0/",
        "http://127.0.0.1.example/",
    ],
)
def test_other_urls_are_refused_without_a_part_of_them(url: str) -> None:
    with pytest.raises(ValueError, match=r"\Aexpected file:///PATH, https") as caught:
        endpoint(url)
    assert "secret" not in str(caught.value)
