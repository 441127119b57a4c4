"""Removal of the API key from text that a server sends, in any form that gives the key back."""

from __future__ import annotations

import base64
import re
from html.entities import html5

#: What stands for the key.
REDACTED = "(key)"
#: Keys at least this long are removed in base64 and hexadecimal too; parts of a shorter one are
#: too short to be told from other text.
SHORTEST_ENCODED = 12
#: Shorter keys are no secret, but what local servers are given, such as 1 or EMPTY. Their
#: characters occur in any answer.
SHORTEST_SECRET = 8


class Redaction:
    """Replaces a key in texts: plain, escaped as in JSON, URLs, HTML or Python, base64, or hex.

    One that is too short to be a secret stays.
    """

    def __init__(self, key: str) -> None:
        forms = ["".join(_any_form(character) for character in key)]
        if len(key) >= SHORTEST_ENCODED:
            forms += [re.escape(form) for form in _base64_forms(key.encode())]
            forms.append(f"(?i:{key.encode().hex()})")
        self._pattern = re.compile("|".join(forms)) if len(key) >= SHORTEST_SECRET else None

    def __call__(self, text: str) -> str:
        """The text without the key, if that is a secret."""
        return text if self._pattern is None else self._pattern.sub(REDACTED, text)


def _any_form(character: str) -> str:
    """A pattern of one character, plain or escaped, also repeatedly.

    Repetitions are bounded, so that the time stays linear in the length of the text.
    """
    code = ord(character)
    digits = f"(?i:{code:02x})"
    names = [name for name, text in html5.items() if text == character and name.endswith(";")]
    named = "".join(f"|&{name}" for name in names)
    return (
        rf"(?:\\{{0,8}}{re.escape(character)}"
        rf"|\\{{1,8}}(?:u00|x){digits}"
        rf"|%(?:25){{0,4}}{digits}"
        rf"|&#(?:0{{0,8}}{code}|[xX]0{{0,8}}{digits});{named})"
    )


def _base64_forms(data: bytes) -> set[str]:
    """What base64 of any text around the data contains: one form for each offset and alphabet."""
    forms = set()
    for offset in range(3):
        # Characters that also hold bits of the text before or after the data are left out.
        first, last = -(-8 * offset // 6), 8 * (offset + len(data)) // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            forms.add(encode(bytes(offset) + data).decode()[first:last])
    return forms
