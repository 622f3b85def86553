"""Names the principal of a client's certificate, as Kafka's `ssl.principal.mapping.rules` do.

subject ─▶ "CN=alice,OU=sales,O=Acme" (RFC 2253) ─▶ first rule that matches ─▶ name
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

MAPPING_RULES: Final = "ssl.principal.mapping.rules"
DEFAULT: Final = "DEFAULT"
RULE: Final = re.compile(
    r"\s*(?:(?P<default>DEFAULT)"
    r"|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?))"
    r"\s*(?:,|$)"
)
GROUP: Final = re.compile(r"\$(\d)")
KEYWORDS: Final = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
"""The attributes that RFC 2253 has keywords for, by the names of OpenSSL."""
EMAIL: Final = "emailAddress"
EMAIL_OID: Final = "1.2.840.113549.1.9.1"
IA5_STRING: Final = 0x16
SPECIAL: Final = re.compile(r'([,+"\\<>;]|^[# ]| $)')
Subject = Sequence[Sequence[tuple[str, str]]]
"""Relative distinguished names in the order of the certificate: attributes and values."""


def distinguished_name(subject: Subject) -> str:
    """Return the name of a subject in the form of RFC 2253: the last attribute comes first."""
    return ",".join("+".join(_attribute(*each) for each in names) for names in reversed(subject))


def _attribute(name: str, value: str) -> str:
    if name == EMAIL and len(value) < 0x80:  # without a keyword: its OID, and its value as DER
        return f"{EMAIL_OID}=#{bytes([IA5_STRING, len(value)]).hex()}{value.encode().hex()}"
    escaped = SPECIAL.sub(r"\\\1", value)
    return f"{KEYWORDS.get(name, name)}={escaped}"


class MappingRule(NamedTuple):
    """A rule: the text that it makes of what its pattern matches as a whole."""

    pattern: re.Pattern[str]
    replacement: str
    case: str = ""

    def apply(self, name: str) -> str | None:
        """Return what the rule makes of a name, None if it does not match."""
        match = self.pattern.fullmatch(name)
        if match is None:
            return None
        mapped = GROUP.sub(lambda group: match[int(group[1])] or "", self.replacement)
        return {"L": mapped.lower(), "U": mapped.upper()}.get(self.case, mapped)


ANY: Final = MappingRule(re.compile(r"(.*)", re.DOTALL), "$1")


def mapping_rules(text: str) -> tuple[MappingRule, ...]:
    """Parse rules: DEFAULT, and RULE:pattern/replacement/[LU], with commas between them.

    Raises ValueError for what is not a rule, and for a pattern that is not valid.
    """
    rules: list[MappingRule] = []
    position = 0
    while position < len(text):
        match = RULE.match(text, position)
        if match is None:
            raise ValueError(f"{MAPPING_RULES}: invalid rule {text[position:]!r}")
        position = match.end()
        rules.append(ANY if match["default"] else _rule(match))
    return tuple(rules) or (ANY,)


def _rule(match: re.Match[str]) -> MappingRule:
    try:
        pattern = re.compile(match["pattern"].replace(r"\/", "/"))
    except re.error as error:
        raise ValueError(f"{MAPPING_RULES}: {match['pattern']!r}: {error}") from None
    groups = GROUP.findall(match["replacement"])
    if any(int(each) > pattern.groups for each in groups):
        raise ValueError(f"{MAPPING_RULES}: {match['replacement']!r}: no such group")
    return MappingRule(pattern, match["replacement"], match["case"])


def principal_name(rules: Iterable[MappingRule], name: str) -> str | None:
    """Return the name that the first matching rule makes of a distinguished name, None for none."""
    applied = (rule.apply(name) for rule in rules)
    return next((each for each in applied if each is not None), None)
