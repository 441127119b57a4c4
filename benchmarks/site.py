"""Time to build a site of many records and to load its pages.

    python -m benchmarks.site [--records 2000] [--json FILE]

The records are synthetic, from one run of a solver; half of them are of one task. Needs Chromium.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from iclbench import Record, RecordStore, run
from iclbench.api.record import MAIN
from iclbench.leaderboards.site.build import make_site
from iclbench.runs.statistics import summarize
from iclbench.runs.store import read_values

from . import argument_parser
from .measured import measured, publish

#: The element that a page must show before it counts as loaded.
PAGES = {
    "index.html": "table.heat",
    "tasks/least-squares.html": "table.board",
    "compare/least-squares.html": "#histogram svg",
}


def synthesize(store: RecordStore, count: int) -> list[Record]:
    """Write `count` records with plausible, different numbers."""
    first = run(model="ridge", task="least-squares", eval_prompts=256, out=store.folder / "base")
    base = RecordStore(store.folder / "base")
    arrays = read_values(base.path(first.spec), first.main.values)
    store.objects.write_arrays(read_values(base.path(first.spec), first.main.floor.values))
    rng = np.random.default_rng(0)
    records = []
    for i in range(count):
        task = "least-squares" if i % 2 else f"synthetic-{i // 2 % 10}"
        spec = first.spec.model_copy(
            update={
                "task": task,
                "model": f"model-{i % 40}",
                # The last argument makes every record one of its own.
                "model_args": {"ridge": 10.0 ** -(i % 7), "layers": i // 40 % 12,
                               "width": 8 * (1 + i // 480)},
                "dtype": ("float32", "float64")[i // 40 % 2],
            }
        )  # fmt: skip
        noise = 10 ** rng.normal(-(i % 13), 1, size=arrays["squared_error"].shape)
        values = arrays["squared_error"] * noise
        statistics = summarize(values, "squared")
        evaluation = first.main.model_copy(
            update={
                "title": task,
                "metrics": {"squared_error": statistics},
                "seeds": [{"squared_error": statistics}],
                "values": store.objects.write_arrays({"squared_error": values}),
            }
        )
        record = first.model_copy(
            update={
                "id": spec.id,
                "spec": spec,
                "evaluations": {MAIN: evaluation},
            }
        ).sealed()
        store.write(record)
        records.append(record)
    return records


def busy_seconds(browser: Any) -> float:
    """Processor time of the page's main thread, which other processes do not lengthen."""
    metrics = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return float(next(m["value"] for m in metrics if m["name"] == "TaskDuration"))


def load_times(folder: Path, run_id: str) -> list[dict[str, object]]:
    """Seconds until each page's load event, and until its main element is shown.

    `main thread` is processor time, the others are wall-clock time.
    """
    from tests.browser import open_browser

    rows = []
    with open_browser() as browser:
        browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        for page, shown in {**PAGES, f"runs/{run_id}.html": "pre.command"}.items():
            browser.get("about:blank")
            before = busy_seconds(browser)
            started = time.perf_counter()
            browser.get((folder / page).as_uri())
            while not browser.find_elements("css selector", shown):
                time.sleep(0.01)
            seconds = time.perf_counter() - started
            script = "return performance.getEntriesByType('navigation')[0].loadEventEnd / 1000"
            size = (folder / page).stat().st_size / 1000
            rows.append(
                {
                    "page": page,
                    "kB": f"{size:,.0f}",
                    "load event, s": f"{browser.execute_script(script):.2f}",
                    "shown, s": f"{seconds:.2f}",
                    "main thread, s": f"{busy_seconds(browser) - before:.2f}",
                }
            )
    return rows


def main() -> None:
    """Print a table."""
    parser = argument_parser(__doc__)
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--json", type=Path, help="write the table to this file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = RecordStore(folder / "leaderboards" / "records")
        records = synthesize(store, arguments.records)
        started = time.perf_counter()
        pages = make_site(folder / "site", folder / "leaderboards")
        built = {
            "page": f"all {pages:,}, built",
            "shown, s": f"{time.perf_counter() - started:.0f}",
        }
        rows = [*load_times(folder / "site", records[1].id), built]
    command = f"python -m benchmarks.site --records {arguments.records}"
    publish(measured(command, rows), arguments.json)


if __name__ == "__main__":
    main()
