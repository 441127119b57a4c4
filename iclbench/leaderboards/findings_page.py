"""findings.md: what papers found, the criterion of each finding, and the verdict here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tabulate import tabulate

from .escaping import markdown
from .findings import Outcome, Verdict
from .pages import GENERATED

#: What the verdicts mean, in the order of the page.
VERDICTS: dict[Verdict, str] = {
    "reproduced": "the number is in the range that the paper's claim gives",
    "in kind": "the effect is there, but smaller",
    "not shown": "neither that nor the opposite",
    "contradicted": "the opposite, at this budget",
    "not run": "the study has no record of this budget yet",
}


def findings_page(outcomes: Sequence[Outcome]) -> str:
    """The page as Markdown: a count of the verdicts, and a line per finding with its criterion."""
    counts = Counter(outcome.verdict for outcome in outcomes)
    summary = ", ".join(f"{counts[name]} {name}" for name in VERDICTS if counts[name])
    meanings = "; ".join(f"*{name}*: {text}" for name, text in VERDICTS.items())
    parts = [
        f"{GENERATED}\n\n# Findings of papers",
        f"{len(outcomes)} findings: {summary}. The criteria are in [findings.toml](findings.toml), "
        "each with the day on which it was written: before the study was run, unless it says "
        "*after the run*. A verdict follows "
        "from the study's records alone: the number must be in the range over all seeds, and for "
        f"most seeds. {meanings}. [All tasks](README.md)",
        _table(outcomes),
        "## Criteria",
        "\n".join(
            f"{number}. {markdown(outcome.finding.criterion)} Written {outcome.finding.written}"
            f"{', after the run' * outcome.finding.after_run}."
            for number, outcome in enumerate(outcomes, start=1)
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _table(outcomes: Sequence[Outcome]) -> str:
    lines = [
        {
            "": str(number),
            "claim": markdown(outcome.finding.claim),
            "source": markdown(outcome.finding.source),
            "verdict": f"**{outcome.verdict}**",
            "number": "" if outcome.number is None else f"{outcome.number:.3g}",
            "by seed": ", ".join(f"{value:.3g}" for value in outcome.by_seed),
            "records": f"`studies/{outcome.finding.records}`",
        }
        for number, outcome in enumerate(outcomes, start=1)
    ]
    align = ("right", "left", "left", "left", "right", "left", "left")
    return tabulate(lines, headers="keys", tablefmt="github", disable_numparse=True, colalign=align)
