"""Reads client configuration from files and the environment.

    --config FILE        Kafka's properties format, as for Kafka's own tools
    --profile NAME       [profiles.NAME] in kafkawire.toml, here or in the user's configuration
    KAFKAWIRE_*          KAFKAWIRE_SASL_PASSWORD is sasl.password

So no password needs to be an argument, which `ps` shows.
"""

from __future__ import annotations

import os
import re
import time
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

OAUTH_KEYS: Final = {
    "clientId": "sasl.oauthbearer.client.credentials.client.id",
    "clientSecret": "sasl.oauthbearer.client.credentials.client.secret",
    "scope": "sasl.oauthbearer.scope",
}
"""The same for a server that issues tokens."""
LOGIN_HANDLER: Final = "sasl.login.callback.handler.class"
LOGIN_HANDLERS: Final = re.compile(
    r"org\.apache\.kafka\.common\.security\.oauthbearer\."
    r"((secured\.)?OAuthBearerLogin|internals\.unsecured\.OAuthBearerUnsecuredLogin)CallbackHandler"
)
"""Java's own: other keys say where tokens come from."""

JAVA_KEYS: Final = {
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.keystore.location": "ssl.certificate.location",
}
STORE_TYPES: Final = ("ssl.truststore.type", "ssl.keystore.type")
PEM_ONLY: Final = "only PEM files are read: convert the store, and set this to PEM"
UNUSED: Final = frozenset({*STORE_TYPES, "ssl.truststore.password", "ssl.keystore.password"})
"""Keys that say how a store is read; PEM files need none of them."""
HOST_CHECK: Final = "ssl.endpoint.identification.algorithm"


def from_java(properties: Mapping[str, str]) -> dict[str, Any]:
    """Translate the keys of Kafka's Java client that are named otherwise here.

    Raises ValueError for stores other than PEM, for a login module that is not valid, and for a
    login callback handler that is not Kafka's.
    """
    translated: dict[str, Any] = {}
    for key, value in properties.items():
        if key == JAAS:
            translated |= _login(value)
        elif key in STORE_TYPES and value.upper() != "PEM":
            raise ValueError(f"{key}={value}: {PEM_ONLY}")
        elif key == LOGIN_HANDLER:
            if not LOGIN_HANDLERS.fullmatch(value):
                raise ValueError(f"{key}: expected one of Kafka's, for OAUTHBEARER")
        elif key == HOST_CHECK:
            translated[key] = value or "none"
        elif key not in UNUSED:
            translated[JAVA_KEYS.get(key, key)] = value
    stores = {store for store in JAVA_KEYS if store in properties}
    for store in stores:
        if store.replace("location", "type") not in properties:  # Java's default is JKS
            raise ValueError(f"{store.replace('location', 'type')} is not set: {PEM_ONLY}")
    return translated


def _login(text: str) -> dict[str, Any]:
    """Return what the options of a login module say, by our keys."""
    from kafkawire.broker.security.jaas import MODULES, login_module

    try:
        module = login_module(text)
        if module.name == MODULES["OAUTHBEARER"]:
            return _tokens(module.options)
    except ValueError as error:
        raise ValueError(f"{JAAS}: {error}") from None
    return _renamed(module.options, JAAS_KEYS)


def _tokens(options: Mapping[str, str]) -> dict[str, Any]:
    """Return what the options of OAUTHBEARER say; those of tokens without a signature make some."""
    from kafkawire.client.unsecured_login import PREFIX, unsecured_login

    keys = _renamed(options, OAUTH_KEYS)
    if any(name.startswith(PREFIX) for name in options):
        login = unsecured_login(options)
        keys["sasl.oauth.token.provider"] = lambda: login.token(time.time())
    return keys


def _renamed(options: Mapping[str, str], keys: Mapping[str, str]) -> dict[str, Any]:
    return {key: options[name] for name, key in keys.items() if name in options}


# -- profiles


def profile_files(directory: Path, home: Path, environment: Mapping[str, str]) -> list[Path]:
    """Return the files that may have profiles, in the order in which they are searched."""
    own = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    return [directory / PROFILES, own / "kafkawire" / PROFILES]


def read_profile(name: str, files: Iterable[Path]) -> dict[str, Any]:
    """Read a profile from the first file that has it; ValueError if there is none.

    A key may be quoted or not: `bootstrap.servers` is a table in TOML, with the same meaning.
    """
    import tomllib

    names: list[str] = []
    for file in files:
        if not os.path.exists(file):
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
