"""Seeded mutations of JSON, of text and of command lines."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

#: Texts that somebody would write into a page, a table, a terminal, a path or a shell.
HOSTILE_TEXTS = (
    "", " ", ".", "..", "../../escape", "/escape", "a/b", "\\", "C:\\x", "objects", "-", "--", "-x",
    "<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "```", "~~~", "|", "a|b",
    "[x](javascript:alert(1))", "**bold**", "=HYPERLINK(\"http://example.org\")", "+1", "@SUM(A1)",
    "\u202egnp.exe", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x00", "a\nb", "a\rb", "\u2028",
    "\ud800", "\ufeff", "é" * 50, "x" * 300, "x" * 30_000, "𝔘", "{{ 7 * 7 }}", "{% raw %}", "%s%n",
    "$(id)", "`id`", "; rm -r .", "nan", "inf", "1e999", "null", "true", "0x10", "1_000", "@file",
    "@../../secret", "a=b", "key=[", "task_seed=-1", "trained", "main", "squared_error",
)  # fmt: skip

#: Numbers at the edges of what other code expects.
HOSTILE_NUMBERS: tuple[float | int, ...] = (
    0, -1, 1, 2, 3, 7, 255, 2**16, 10**6, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 2**70,
    10**12, 10**400, 0.0, -0.0, 0.5, 1e-300, 5e-324, 1e300, -1e300, 1e17,
)  # fmt: skip

#: What JSON's grammar allows or nearly allows, written in place of a number.
HOSTILE_TOKENS = ("NaN", "Infinity", "-Infinity", "1e999", "9" * 5000, "-0", "1E400", "01", "+1",
                  "[" * 100_000, "{\"a\":" * 3000, "\"\\ud800\"", "\"\\u0000\"")  # fmt: skip

Path = tuple[str | int, ...]


def value(random_: random.Random) -> Any:
    """Any value that JSON could hold."""
    scalar: Callable[[], Any] = random_.choice(
        [
            lambda: random_.choice(HOSTILE_TEXTS),
            lambda: random_.choice(HOSTILE_NUMBERS),
            lambda: random_.choice([None, True, False]),
            lambda: random_.uniform(-10, 10),
        ]
    )
    kind = random_.random()
    if kind < 0.75:
        return scalar()
    if kind < 0.85:
        return [scalar() for _ in range(random_.randrange(4))]
    if kind < 0.97:
        return {random_.choice(HOSTILE_TEXTS): scalar() for _ in range(random_.randrange(3))}
    nested: Any = 0
    for _ in range(random_.choice([10, 60, 900])):
        nested = [nested]
    return nested


def places(content: Any, place: Path = ()) -> list[Path]:
    """The place of every value inside the content."""
    inner = content.items() if isinstance(content, dict) else enumerate(content)
    result = []
    for key, item in inner:
        result.append((*place, key))
        if isinstance(item, dict | list):
            result += places(item, (*place, key))
    return result


def mutate_content(content: dict[str, Any], random_: random.Random) -> None:
    """Change, delete, copy or rename one value of the content, wherever it is."""
    everywhere = places(content)
    *above, key = random_.choice(everywhere)
    parent: Any = content
    for step in above:
        parent = parent[step]
    action = random_.random()
    if action < 0.5:
        parent[key] = value(random_)
    elif action < 0.6:
        parent[key] = at(content, random_.choice(everywhere))
    elif action < 0.75:
        del parent[key]
    elif isinstance(parent, list):
        parent.insert(int(key), parent[int(key)])
    else:
        parent[random_.choice(HOSTILE_TEXTS)] = parent[key]


def at(content: Any, place: Path) -> Any:
    """A copy of the value at this place."""
    for key in place:
        content = content[key]
    return json.loads(json.dumps(content))


def mutate_text(text: str, random_: random.Random) -> str:
    """Cut, double, swap, insert or replace pieces of a text."""
    for _ in range(random_.choice([1, 1, 2, 5])):
        start, stop = sorted(random_.randrange(len(text) + 1) for _ in range(2))
        stop = min(stop, start + random_.choice([1, 5, 50, len(text)]))
        text = random_.choice(
            [
                lambda t, a, b: t[:a] + t[b:],
                lambda t, a, b: t[:b] + t[a:],
                lambda t, a, b: t[:a],
                lambda t, a, b: t[:a] + random_.choice(HOSTILE_TEXTS) + t[b:],
                lambda t, a, b: t[:a] + str(random_.choice(HOSTILE_NUMBERS)) + t[b:],
                lambda t, a, b: t[:a] + chr(random_.randrange(0x300)) + t[b:],
                lambda t, a, b: t[:a] + t[a:b][::-1] + t[b:],
            ]
        )(text, start, stop)
    return text


def mutate_number(text: str, random_: random.Random) -> str:
    """Replace one number of a text."""
    digits = [i for i, c in enumerate(text) if c.isdigit()]
    if not digits:
        return mutate_text(text, random_)
    start = stop = random_.choice(digits)
    while stop < len(text) and (text[stop].isdigit() or text[stop] in ".e-"):
        stop += 1
    new = random_.choice([random_.choice(HOSTILE_TOKENS), str(random_.choice(HOSTILE_NUMBERS))])
    return text[:start] + new + text[stop:]


def mutate_words(words: list[str], random_: random.Random) -> list[str]:
    """Drop, double, swap, insert or replace words of a command line."""
    words = list(words)
    for _ in range(random_.choice([1, 1, 2, 3])):
        i, j = random_.randrange(len(words)), random_.randrange(len(words))
        action = random_.randrange(6)
        if action == 0 and len(words) > 1:
            del words[i]
        elif action == 1:
            words.insert(i, words[j])
        elif action == 2:
            words[i], words[j] = words[j], words[i]
        elif action == 3:
            words[i] = random_.choice(HOSTILE_TEXTS)
        elif action == 4:
            words.insert(i, random_.choice(HOSTILE_TEXTS))
        else:
            words[i] = mutate_text(words[i], random_)
    return words
