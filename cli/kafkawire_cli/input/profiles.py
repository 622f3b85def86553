"""Reads client configuration from files and the environment.

    --config FILE        Kafka's properties format, as for Kafka's own tools
    --profile NAME       [profiles.NAME] in kafkawire.toml, here or in the user's configuration
    KAFKAWIRE_*          KAFKAWIRE_SASL_PASSWORD is sasl.password

So no password needs to be an argument, which `ps` shows.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

PROFILES: Final = "kafkawire.toml"
PREFIX: Final = "KAFKAWIRE_"

# -- properties files, as java.util.Properties reads them

LINE: Final = re.compile(r"(?P<key>(?:[^\\\s:=]|\\.)+)\s*[:=]?\s*(?P<value>.*)", re.DOTALL)
ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
CONTROL: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(text: str) -> dict[str, str]:
    """Read a properties file: the last value of a key counts."""
    properties: dict[str, str] = {}
    for line in _logical_lines(text):
        match = LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"no key in the line {line!r}")
        properties[_unescaped(match["key"])] = _unescaped(match["value"])
    return properties


def _logical_lines(text: str) -> Iterator[str]:
    """Join lines that a backslash continues; leave out comments and blank lines."""
    continued = ""
    for physical in text.splitlines():
        line = physical.lstrip(" \t\f")
        if not continued and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            continued += line[:-1]
            continue
        yield continued + line
        continued = ""
    if continued:
        yield continued


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else CONTROL.get(code, code)

    return ESCAPE.sub(character, text)


# -- keys of Kafka's Java client

JAAS: Final = "sasl.jaas.config"
JAAS_KEYS: Final = {"username": "sasl.username", "password": "sasl.password"}

JAVA_KEYS: Final = {
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.keystore.location": "ssl.certificate.location",
}
STORE_TYPES: Final = ("ssl.truststore.type", "ssl.keystore.type")
PEM_ONLY: Final = "only PEM files are read: convert the store, and set this to PEM"
UNUSED: Final = frozenset({*STORE_TYPES, "ssl.truststore.password", "ssl.keystore.password"})
"""Keys that say how a store is read; PEM files need none of them."""
HOST_CHECK: Final = "ssl.endpoint.identification.algorithm"


def from_java(properties: Mapping[str, str]) -> dict[str, str]:
    """Translate the keys of Kafka's Java client that are named otherwise here.

    Raises ValueError for stores other than PEM, and for a login module that is not valid.
    """
    translated: dict[str, str] = {}
    for key, value in properties.items():
        if key == JAAS:
            translated |= _login(value)
        elif key in STORE_TYPES and value.upper() != "PEM":
            raise ValueError(f"{key}={value}: {PEM_ONLY}")
        elif key == HOST_CHECK:
            translated[key] = value or "none"
        elif key not in UNUSED:
            translated[JAVA_KEYS.get(key, key)] = value
    stores = {store for store in JAVA_KEYS if store in properties}
    for store in stores:
        if store.replace("location", "type") not in properties:  # Java's default is JKS
            raise ValueError(f"{store.replace('location', 'type')} is not set: {PEM_ONLY}")
    return translated


def _login(text: str) -> dict[str, str]:
    """Return the name and the password in a login module, by their keys."""
    from kafkawire.broker.security.jaas import login_module

    try:
        options = login_module(text).options
    except ValueError as error:
        raise ValueError(f"{JAAS}: {error}") from None
    return {key: options[name] for name, key in JAAS_KEYS.items() if name in options}


# -- profiles


def profile_files(directory: Path, home: Path, environment: Mapping[str, str]) -> list[Path]:
    """Return the files that may have profiles, in the order in which they are searched."""
    own = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    return [directory / PROFILES, own / "kafkawire" / PROFILES]


def read_profile(name: str, files: Iterable[Path]) -> dict[str, Any]:
    """Read a profile from the first file that has it; ValueError if there is none.

    A key may be quoted or not: `bootstrap.servers` is a table in TOML, with the same meaning.
    """
    names: list[str] = []
    for file in files:
        if not file.exists():
            continue
        try:
            profiles = tomllib.loads(file.read_text("utf-8")).get("profiles", {})
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{file}: {error}") from None
        if name in profiles:
            return dict(_flat(profiles[name]))
        names += profiles
    listed = f"profiles: {', '.join(names)}" if names else f"no {PROFILES} with profiles"
    raise ValueError(f"unknown profile {name!r} ({listed})")


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


# -- environment


def variable(key: str) -> str:
    """Return the name of the environment variable of a key."""
    return PREFIX + key.upper().replace(".", "_")


def of_environment(environment: Mapping[str, str], keys: Iterable[str]) -> dict[str, str]:
    """Return the keys that the environment sets."""
    return {key: environment[variable(key)] for key in keys if variable(key) in environment}
