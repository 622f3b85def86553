"""Reads `sasl.jaas.config` of a mechanism of a listener: one login module with its options.

    org.apache.kafka.common.security.plain.PlainLoginModule required
        username="broker" password="secret" user_broker="secret" user_alice="other";

With PLAIN, `user_NAME` options are the users of the listener. `username` and `password` are the
login with which the node connects to others on that listener. No value is in an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from ...configs import listener_key, prefixed

JAAS: Final = "sasl.jaas.config"
PACKAGE: Final = "org.apache.kafka.common.security."
MODULES: Final = {
    "PLAIN": f"{PACKAGE}plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{PACKAGE}scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{PACKAGE}scram.ScramLoginModule",
    "OAUTHBEARER": f"{PACKAGE}oauthbearer.OAuthBearerLoginModule",
}
"""Mechanism -> its login module."""
FLAGS: Final = frozenset({"required", "requisite", "sufficient", "optional"})
USER: Final = "user_"
TOKEN: Final = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/"""
    r"""|(?P<word>[A-Za-z_$\-.\u00a0-\uffff][\w$\-.]*)"""
    r"""|"(?P<double>(?:[^"\\\n]|\\.)*)"|'(?P<single>(?:[^'\\\n]|\\.)*)'"""
    r"""|(?P<sign>[=;])""",
    re.DOTALL,
)
ESCAPE: Final = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}


class LoginModule(NamedTuple):
    """A login module and its options, by name. The values of options are not in its repr."""

    name: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"LoginModule({self.name}, options={sorted(self.options)})"

    @property
    def users(self) -> dict[str, str]:
        """The passwords of the users of a listener with PLAIN, by name."""
        named = self.options.items()
        return {key.removeprefix(USER): text for key, text in named if key.startswith(USER)}


class _Token(NamedTuple):
    """A part of the text: a sign, or a word, which may be quoted."""

    text: str
    is_sign: bool


def login_module(text: str) -> LoginModule:
    """Parse a value. Raises ValueError, which has no part of the text that may be secret."""
    tokens = _tokens(text)
    if not tokens or tokens[-1] != (";", True):
        raise ValueError("expected ; at the end")
    if tokens.count(_Token(";", True)) > 1:
        raise ValueError("expected one login module")
    name, flag, *rest = [*tokens[:-1], *[_Token("", True)] * 2][: max(len(tokens) - 1, 2)]
    if name.is_sign:
        raise ValueError("expected the name of a login module")
    if flag.is_sign or flag.text.lower() not in FLAGS:
        raise ValueError(f"expected one of {', '.join(sorted(FLAGS))} after the login module")
    options: dict[str, str] = {}
    for start in range(0, len(rest), 3):
        key, *assigned = rest[start : start + 3]
        is_option = len(assigned) == 2 and assigned[0] == ("=", True) and not assigned[1].is_sign
        if key.is_sign or not is_option:
            raise ValueError(f"option {start // 3 + 1}: expected NAME=VALUE, a value in quotes")
        options[key.text] = assigned[1].text
    return LoginModule(name.text, options)


def _tokens(text: str) -> list[_Token]:
    tokens, position = [], 0
    while position < len(text):
        match = TOKEN.match(text, position)
        if match is None:
            raise ValueError(f"invalid at character {position + 1}")
        position = match.end()
        quoted = match["double"] if match["double"] is not None else match["single"]
        if quoted is not None:
            tokens.append(_Token(ESCAPE.sub(_unescaped, quoted), False))
        elif match["word"] or match["sign"]:
            tokens.append(_Token(match["word"] or match["sign"], match["sign"] is not None))
    return tokens


def _unescaped(match: re.Match[str]) -> str:
    escaped = match[1]
    return chr(int(escaped, 8)) if escaped[0] in "01234567" else ESCAPED.get(escaped, escaped)


def module_of(static: Mapping[str, str], listener: str, mechanism: str) -> LoginModule | None:
    """Return the login module of a mechanism of a listener; None if no key has it.

    Raises ValueError, which names the key.
    """
    key = prefixed(listener, JAAS, mechanism)
    text = static.get(key)
    if not text:
        return None
    try:
        module = login_module(text)
        expected = MODULES.get(mechanism)
        if expected is not None and module.name != expected:
            raise ValueError(f"expected {expected}")
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None
    return module


def check_jaas(static: Mapping[str, str]) -> None:
    """Raise ValueError, which names the key, for a value that is not valid."""
    for key in static:
        parsed = listener_key(key)
        if parsed is not None and parsed.name == JAAS and parsed.mechanism:
            module_of(static, parsed.listener, parsed.mechanism)


def plain_users(static: Mapping[str, str], listener: str) -> dict[str, str]:
    """Return the passwords of the users of a listener with PLAIN, by name."""
    module = module_of(static, listener, "PLAIN")
    return {} if module is None else module.users
