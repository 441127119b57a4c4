"""Where pages of a site lead to outside it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...api.errors import UsageError

#: A page of the web, or a path from the site's folder; no other scheme, such as javascript.
_ADDRESS = re.compile(r"https?://[^\s\"<>]+|[^\s\"<>:]+")


@dataclass(frozen=True)
class Links:
    """Addresses of the documentation and of the source code; empty for none.

    An address without a scheme is a path from the site's folder. Raises UsageError for others.
    """

    docs: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        for address in (self.docs, self.source):
            if address and not _ADDRESS.fullmatch(address):
                raise UsageError(
                    f"{address!r} is not an address: give https://… or a path in the site's folder"
                )
