"""A headless Chromium for tests and benchmarks, if one is installed."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: Where tests leave pictures of pages for a reviewer; git ignores it.
SCREENSHOTS = Path(__file__).parents[1] / "build" / "screenshots"


def missing() -> str | None:
    """The reason why no browser can be driven here, or None."""
    if not find("chromium", "google-chrome", "chromium-browser", "chrome"):
        return "no Chromium was found (Debian: apt-get install chromium chromium-driver)"
    if not find("chromedriver"):
        return "no chromedriver was found (Debian: apt-get install chromium-driver)"
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not installed (pip install 'iclbench[dev]')"
    return None


def find(*names: str) -> str | None:
    """The path of the first of these programs that is installed."""
    return next((path for name in names if (path := shutil.which(name))), None)


@contextlib.contextmanager
def open_browser(width: int = 1280, height: int = 900, dark: bool = False) -> Iterator[Any]:
    """A driver of a headless Chromium with a page of that size; a narrow page is a phone's."""
    from selenium import webdriver
    from selenium.webdriver.support.ui import WebDriverWait

    class Chrome(webdriver.Chrome):
        def get(self, url: str) -> None:
            """Load a page whole: chromedriver at times returns before it has its style sheet."""
            super().get(url)
            WebDriverWait(self, 30, 0.02).until(
                lambda page: page.execute_script("return document.readyState") == "complete"
            )

    options = webdriver.ChromeOptions()
    options.binary_location = find("chromium", "google-chrome", "chromium-browser", "chrome") or ""
    # Root in a container has no sandbox; the pages are our own.
    for argument in ("headless=new", "no-sandbox", "disable-dev-shm-usage",
                     "disable-background-networking", f"window-size={width},{height}"):  # fmt: skip
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path=find("chromedriver"))
    driver = Chrome(options=options, service=service)
    try:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        yield driver
    finally:
        driver.quit()
        service.stop()


def save_screenshot(driver: Any, name: str) -> Path:
    """Write a picture of the whole page, at most 4,000 px of it, to SCREENSHOTS/NAME.png."""
    size = driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
    clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 4000), "scale": 1}
    options = {"captureBeyondViewport": True, "clip": clip}
    data = driver.execute_cdp_cmd("Page.captureScreenshot", options)["data"]
    path = SCREENSHOTS / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(base64.b64decode(data))
    return path


def requests_of(driver: Any) -> list[str]:
    """The addresses that pages have asked for since the last call."""
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    sent = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return [parameters["request"]["url"] for parameters in sent]
