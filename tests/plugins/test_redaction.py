"""The key is removed from text in every form that gives it back."""

from __future__ import annotations

import base64
import html
import json
from html.entities import html5
from urllib.parse import quote

import pytest

from iclbench_graders.redaction import Redaction

KEY = "sk-Proj_0123+/=<abcdef>.XYZ~&9"


def escaped(text: str, form: str) -> str:
    return "".join(form.format(ord(character)) for character in text)


def html_name(character: str) -> str:
    """An HTML entity such as &plus; where the character has one."""
    names = [name for name, text in html5.items() if text == character and name.endswith(";")]
    return f"&{names[0]}" if names else character


FORMS = {
    "plain": KEY,
    "json": escaped(KEY, "\\u{:04x}"),
    "json capitals": escaped(KEY, "\\u{:04X}"),
    "json in json": json.dumps(escaped(KEY, "\\u{:04x}")),
    "json slash": KEY.replace("/", "\\/"),
    "partly": KEY.replace("s", "\\u0073").replace("+", "%2B"),
    "python": escaped(KEY, "\\x{:02x}"),
    "url": quote(KEY, safe=""),
    "whole url": escaped(KEY, "%{:02x}"),
    "url twice": quote(quote(KEY, safe=""), safe=""),
    "html": html.escape(KEY),
    "html names": "".join(html_name(character) for character in KEY),
    "html decimal": escaped(KEY, "&#{};"),
    "html hexadecimal": escaped(KEY, "&#x{:x};"),
    "hex": KEY.encode().hex(),
    "HEX": KEY.encode().hex().upper(),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_removed(form):
    text = Redaction(KEY)(f"before {FORMS[form]} after {FORMS[form]}.")
    quotes = '"' if form == "json in json" else ""
    assert text == f"before {quotes}(key){quotes} after {quotes}(key){quotes}."


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("start", ["", "a", "ab", "abc", "user:"])
def test_base64_is_removed_wherever_the_key_stands_in_it(encode, start):
    encoded = encode(f"{start}{KEY} and more".encode()).decode()
    text = Redaction(KEY)(encoded)
    assert "(key)" in text
    # The first and last character that are left hold bits of the text around the key too.
    removed = len(encoded) - len(text.replace("(key)", ""))
    assert removed >= 8 * len(KEY) // 6 - 2


@pytest.mark.parametrize("key", ["1", "10", "EMPTY"])
def test_what_local_servers_are_given_is_no_secret(key):
    """Removed, it would take the grades with it."""
    answer = json.dumps({"grammar": 1, "consistency": 10, "note": "EMPTY"})
    assert Redaction(key)(answer) == answer


def test_other_text_is_left():
    text = '{"grammar": 7, "plot": 5} sk-Proj_0123 \\u0073 %2B'
    assert Redaction(KEY)(text) == text
    assert Redaction("none")(text) == text


@pytest.mark.parametrize("part", ["\\", "s", "%25", "&#0", KEY[:-1]])
def test_a_long_text_that_almost_holds_the_key_is_left(part):
    # Quadratic time would be hours.
    text = part * (1_000_000 // len(part))
    assert Redaction(KEY)(text) == text
