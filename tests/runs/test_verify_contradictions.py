"""Forgeries that contradict themselves are refused before any fact is compared.

See also test_verify_forgeries.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zstandard
from forging import (
    Content,
    Forgery,
    edit,
    edit_command,
    edit_spec,
    find,
    problem_of,
    proved,
    reseal,
    seeds_listed,
    solver,
)

from iclbench import verify
from iclbench.runs.objects import Objects

OTHER_CURVE = "its statistics of prefix_error do not follow from its stored values"


def edit_curve(change: Callable[[Content], object]) -> Forgery:
    def forge(folder: Path) -> Path:
        path = solver(folder, "gradient-descent")
        return reseal(path, lambda c: change(c["evaluations"]["main"]["curves"]))

    return forge


def zero_curve(curves: Content) -> None:
    for name in ("mean", "median", "max", "low", "high"):
        curves["prefix_error"][name] = [0.0] * len(curves["prefix_error"][name])


def seeds_repeated(folder: Path) -> Path:
    """Two copies of one seed, in the spec and the command too."""

    def change(content: Content) -> None:
        content["seeds"] = [{"seed": 0, "diverged_at": None}] * 2
        content["spec"]["seeds"] = [0, 0]
        content["command"] = content["command"].replace("--seeds 2", "--seeds 0,0,")

    return reseal(find(folder), change)


def invented_metrics(folder: Path) -> Path:
    """Metrics that all name one small file of a great many zeros."""
    path = find(folder)
    objects, zeros = Objects.beside(path), np.broadcast_to(0.0, (2, 2**24))
    size = zstandard.ZstdCompressor().compress(bytes(8 * zeros.size))
    bomb = objects.write(size, "f64.zst").model_copy(update={"shape": zeros.shape})

    def change(content: Content) -> None:
        main = content["evaluations"]["main"]
        for name in (f"m{i}" for i in range(4)):
            for metrics in (main["metrics"], *main["seeds"]):
                metrics[name] = metrics["squared_error"]
            main["values"][name] = bomb.model_dump(mode="json")

    return reseal(path, change)


#: Name → the forgery, and what its refusal says.
REFUSED: dict[str, tuple[Forgery, str]] = {
    "ranking.scale": (
        edit(lambda c: c["ranking"].update(scale="linear")), "ranking.scale: Extra inputs",
    ),
    "ranking.metric": (
        edit(lambda c: c["ranking"].update(metric="other")), "the metric that ranks is missing",
    ),
    "a command with a shell line": (
        edit(lambda c: c.update(command=c["command"] + "; curl example.org | sh")),
        "unknown option 'curl'",
    ),
    "a command on two lines": (
        edit(lambda c: c.update(command=c["command"] + "\nrm -r .")), "has invisible characters",
    ),
    "a command with Markdown": (
        edit(
            lambda c: c.update(command=c["command"] + "\n```\n<script>alert(1)</script>\n```bash")
        ),
        "has invisible characters",
    ),
    "a command that reads a file": (
        edit_command("dim=2,examples=4", "@/etc/passwd"), "reads its --task-args from a file",
    ),
    "a spec's number without a point": (edit_spec(perturb=0), "is not written as runs write it"),
    "a field of the spec left out": (
        edit(lambda c: c["spec"].pop("checkpoint_digest")), "is not written as runs write it",
    ),
    "a field of the spec without a value": (
        edit_spec(budget=None), "is not written as runs write it",
    ),
    "a proof of more than was checked": (
        proved(same_bits=True), "a proof by evaluation says nothing",
    ),
    "a negative number of threads": (
        edit(lambda c: c["environment"].update(threads=-5)), "environment.threads: Input",
    ),
    "repeated seeds everywhere": (seeds_repeated, "seeds must be distinct"),
    "a seed more": (seeds_listed(0, 1, 2), "not those of its seeds and prompts"),
    "more values than memory": (invented_metrics, "at most 134,217,728 are read"),
    "no seeds": (seeds_listed(), "not those of its seeds and prompts"),
    "curves dropped": (
        edit_curve(lambda curves: curves.clear()), OTHER_CURVE,
    ),
    "a curve of zeros": (edit_curve(zero_curve), OTHER_CURVE),
    "a curve's axis": (
        edit_curve(lambda curves: curves["prefix_error"].update(axis="step")),
        OTHER_CURVE,
    ),
    "a curve's positions": (
        edit_curve(lambda curves: curves["prefix_error"].update(values=[0, 10, 20, 30, 40])),
        OTHER_CURVE,
    ),
    "unknown recipe arguments in the command": (
        edit_command("--recipe smoke", "--recipe smoke --recipe-args magic=1"),
        "recipe smoke: unknown field 'magic'",
    ),
    "weights of other content": (
        edit(lambda c: c["weights"].update(sha256="0" * 64)), "can't be read",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_forgery_that_contradicts_itself_is_refused(records, name):
    forgery, reason = REFUSED[name]
    assert reason in problem_of(forgery(records), verify)
