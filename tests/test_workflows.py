"""The workflows that publish: which rights their jobs have, and in which order steps run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

WORKFLOWS = Path(__file__).parents[1] / ".github" / "workflows"


def _jobs(name: str) -> dict[str, Any]:
    return yaml.safe_load((WORKFLOWS / name).read_text("utf-8"))["jobs"]


@pytest.mark.parametrize("name", ["heldout.yml", "release.yml"])
def test_a_job_that_installs_packages_may_only_read(name):
    installing, *publishing = _jobs(name).values()
    assert set(installing["permissions"].values()) == {"read"}
    checkouts = [s for s in installing["steps"] if "checkout" in s.get("uses", "")]
    assert [step["with"]["persist-credentials"] for step in checkouts] == [False]
    for job in publishing:
        assert job["permissions"]["contents"] == "write"
        assert not any("setup-python" in step.get("uses", "") for step in job["steps"])
        assert not any("pip" in step.get("run", "") for step in job["steps"])


def test_a_release_has_the_version_of_its_tag_and_files_that_were_tested():
    jobs = _jobs("release.yml")
    scripts = [step.get("run", step.get("uses", "")) for step in jobs["build"]["steps"]]
    order = [
        "hatchling version",
        "hatchling build",
        "dist/*.whl",
        "clean/bin/iclbench run",
        "upload",
    ]
    positions = [next(i for i, s in enumerate(scripts) if text in s) for text in order]
    assert positions == sorted(positions)
    (release,) = [step for step in jobs["publish"]["steps"] if "run" in step]
    assert release["run"].startswith("gh release create ")
    tokens = [step for job in jobs.values() for step in job["steps"] if "GH_TOKEN" in str(step)]
    assert tokens == [release]


def test_a_row_gets_one_held_out_salt():
    text = (WORKFLOWS / "heldout.yml").read_text("utf-8")
    assert yaml.safe_load(text)["concurrency"] == {"group": "heldout", "cancel-in-progress": False}
    first = _jobs("heldout.yml")["evaluate"]["steps"][0]["run"]
    # It looks for the branches that the last step pushes.
    assert "gh pr list --state open" in first
    assert "'^heldout-'" in first
    assert 'branch="heldout-$GITHUB_RUN_ID-$GITHUB_RUN_ATTEMPT"' in text
