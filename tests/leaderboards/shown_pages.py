"""Pages of the site of the published records in Chromium, for tests of what readers see.

Tests leave screenshots in build/screenshots, or in the folder that SCREENSHOTS names.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from browser import open_browser

ROOT = Path(__file__).parents[2]
PICTURES = Path(os.environ.get("SCREENSHOTS", ROOT / "build" / "screenshots"))


@contextlib.contextmanager
def opened(width: int, dark: bool):
    """A browser; afterwards, nothing was asked of the network and the console is empty."""
    with open_browser(width, 900 if width > 600 else 844, dark) as browser:
        yield browser
        assert browser.get_log("browser") == []
        messages = [json.loads(e["message"])["message"] for e in browser.get_log("performance")]
        urls = [m["params"]["request"]["url"] for m in messages
                if m["method"] == "Network.requestWillBeSent"]  # fmt: skip
        assert urls
        assert {url.split(":")[0] for url in urls} <= {"file", "data", "about", "blob"}


def visit(browser, page: Path, fragment: str = "") -> None:
    browser.get("about:blank")
    browser.get(page.as_uri() + fragment)
    ready = "return location.pathname.endsWith(arguments[0]) && document.readyState === 'complete'"
    until(browser, lambda: browser.execute_script(ready, page.name))


def until(browser, condition):
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, 20).until(lambda _: condition())


def find(browser, selector: str):
    return browser.find_elements("css selector", selector)


def shown(browser) -> list[str]:
    rows = find(browser, "section.evaluation:first-of-type table.board tr[data-id]")
    return [row.get_attribute("data-id") for row in rows if row.is_displayed()]
