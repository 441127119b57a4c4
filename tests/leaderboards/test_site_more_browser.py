"""The further pages in Chromium: wide and narrow, light and dark, with pictures for a reviewer."""

from __future__ import annotations

import re
import shutil
import threading
from contextlib import closing
from pathlib import Path

import pytest
from browser import missing, open_browser, requests_of, save_screenshot
from rich_records import make_rich

from iclbench import RecordStore
from iclbench.leaderboards.site.build import make_site
from iclbench.leaderboards.site.live import LiveSite
from iclbench.leaderboards.site.server import Server
from iclbench.runs.store import read_record

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=str(missing()))]


@pytest.fixture(scope="module")
def folder(leaderboards, tmp_path_factory):
    return make_rich(tmp_path_factory.mktemp("rich"), leaderboards)


@pytest.fixture(scope="module")
def site(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("site") / "out"
    make_site(out, folder)
    return out


def pages(folder: Path) -> dict[str, str]:
    """The pages to look at, by a short name; the run is a trained one."""
    records = map(read_record, RecordStore(folder / "records").paths())
    run = next(r.id for r in records if r.spec.origin == "trained")
    return {
        "studies": "studies.html",
        "study": "studies/least-squares-depth.html",
        "study-run": f"studies/least-squares-depth/{run}.html",
        "run": f"runs/{run}.html",
        "matrices": "matrices.html",
        "shifts": "shifts/least-squares.html",
        "states": "states/least-squares.html",
        "analysis": "analyses/attention-maps.html",
        "samples": "samples/least-squares.html",
    }


#: Text that the page shows in a color with less contrast to its ground than 4.5 : 1.
FAINT = """
const dot = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
const parse = (c) => { dot.clearRect(0, 0, 1, 1); dot.fillStyle = c; dot.fillRect(0, 0, 1, 1);
  const n = [...dot.getImageData(0, 0, 1, 1).data]; return n[3] < 255 ? null : n; };
const light = ([r, g, b]) => { const f = (v) => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; };
  return .2126 * f(r) + .7152 * f(g) + .0722 * f(b); };
const ground = (e) => { for (; e; e = e.parentElement) { const p = parse(getComputedStyle(e).backgroundColor);
  if (p) return p; } return [255, 255, 255]; };
return [...document.querySelectorAll('main p, main li, main h1, main h2, main h3, main h4, main dd, main dt, main a, main td, main td small, .chip, .dotlabel, .dotvalue, .tick')]
  .filter((e) => e.textContent.trim() && e.getClientRects().length)
  .map((e) => { const a = parse(getComputedStyle(e).color), b = ground(e); if (!a || !b) return null;
    const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return [(x + .05) / (y + .05), e.textContent.trim().slice(0, 60)]; })
  .filter((p) => p && p[0] < 4.5);
"""  # noqa: E501


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1400, 390])
def test_pages_fit_have_contrast_log_nothing_and_ask_for_nothing_elsewhere(
    site, folder, width, dark
):
    with open_browser(width, 900, dark) as driver:
        for name, page in pages(folder).items():
            driver.get((site / page).as_uri())
            wide = driver.execute_script("return document.documentElement.scrollWidth")
            assert wide <= width, page
            ground = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
            assert (max(map(int, re.findall(r"\d+", ground)[:3])) < 100) == dark
            assert driver.execute_script(FAINT) == [], page
            save_screenshot(driver, f"{name}-{width}-{'dark' if dark else 'light'}")
        assert driver.get_log("browser") == []
        urls = requests_of(driver)
        assert len(urls) >= len(pages(folder))
        assert all(url.startswith(("file:", "data:", "about:")) for url in urls)


def test_commands_id_and_citation_are_copied(site, folder):
    page = pages(folder)["run"]
    with open_browser(1400, 900) as driver:
        driver.get((site / page).as_uri())
        # A page may read back what it has copied only with the user's consent.
        driver.execute_script(
            "window.copied = []; navigator.clipboard.writeText = (t) => "
            "{ window.copied.push(t); return Promise.resolve(); };"
            # A button keeps saying that it copied, however slow the test is.
            "window.setTimeout = () => 0;"
        )
        for button in driver.find_elements("css selector", "button.copy"):
            button.click()
        command, verify, identifier, entry = driver.execute_script("return window.copied")
        assert command.startswith("iclbench run --model baseconv")
        assert verify.startswith("iclbench verify leaderboards/records/least-squares/baseconv-")
        assert identifier == Path(page).stem
        assert entry.startswith(f"@misc{{iclbench-{identifier},")
        assert driver.find_element("css selector", "button.copy").text == "Copied"


def test_a_live_page_reloads_when_a_record_arrives(leaderboards, tmp_path):
    from selenium.webdriver.support.ui import WebDriverWait

    folder = tmp_path / "results"
    (folder / "least-squares").mkdir(parents=True)
    shutil.copytree(leaderboards / "records" / "objects", folder / "objects")
    records = sorted((leaderboards / "records" / "least-squares").glob("*.json"))
    shutil.copy(records[0], folder / "least-squares")
    with closing(LiveSite(folder, print)) as site, Server(site, 0) as server:
        site.refresh()
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}).start()
        site.watch()
        with open_browser(1400, 900) as driver:
            driver.get(server.url + "samples/least-squares.html")
            rows = "return document.querySelectorAll('table.values tbody a').length"
            before = driver.execute_script(rows)
            assert before > 0
            for record in records[1:]:
                shutil.copy(record, folder / "least-squares")
            WebDriverWait(driver, 60).until(lambda d: d.execute_script(rows) > before)
            urls = [url for url in requests_of(driver) if not url.startswith(("data:", "about:"))]
            assert all(url.startswith(server.url) for url in urls)
            assert any(url.endswith("/events") for url in urls)
            assert driver.get_log("browser") == []
        server.shutdown()
