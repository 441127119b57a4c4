"""Pull requests in real repositories: what may not be merged is refused, and nothing is run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from forging import reseal
from git_repository import Repository

from iclbench import RecordStore, RunSpec, UsageError, run
from iclbench.leaderboards.pull_request import check
from iclbench.runs.plan import resolve
from iclbench.runs.run import run_plans
from iclbench.runs.settings import Settings
from iclbench.runs.tuned import tuned
from iclbench.sweeps.tuning.search import tune
from iclbench.sweeps.tuning.settings import SearchSettings

ROOT = Path(__file__).parents[2]
TINY = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "eval_prompts": 32}
RECORDS = Path("leaderboards/records")


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    run(model="zero", **TINY, out=folder)
    return folder


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    """New records: the values of the floor are those of the published one."""
    folder = tmp_path_factory.mktemp("results")
    run(model="averaging", **TINY, out=folder)
    run(model="baseconv", **TINY, recipe="smoke", seeds=2, out=folder)
    return folder


@pytest.fixture
def repository(published, tmp_path) -> Repository:
    folder = tmp_path / "repository"
    shutil.copytree(published, folder / RECORDS)
    (folder / "code.py").write_text("print('base')\n")
    (folder / "leaderboards" / "README.md").write_text("old\n")
    made = Repository(folder)
    made.commit()
    made.git("checkout", "--quiet", "-b", "pull")
    return made


def refused(repository: Repository) -> list[str]:
    head = repository.commit()
    repository.git("checkout", "--quiet", "main")
    return check(repository.folder, "main", head, repository.folder.parent / "new")


def add_records(repository: Repository, results: Path, where: Path = RECORDS) -> Path:
    folder = repository.folder / where
    shutil.copytree(results, folder, dirs_exist_ok=True)
    return next(folder.glob("*/averaging*.json"))


@pytest.mark.parametrize("where", [RECORDS, Path("leaderboards/studies/some-study")])
def test_records_with_all_their_files_are_copied_and_verify(cli, repository, results, where):
    add_records(repository, results, where)
    (repository.folder / "leaderboards" / "README.md").write_text("new\n")
    assert refused(repository) == []
    new = repository.folder.parent / "new" / where
    copied = list(RecordStore(new).paths())
    assert len(copied) == 2
    assert cli("verify", new).code == 0
    # The floor's values are in the base branch only; the pull request's own copy is not needed.
    assert cli("submit", "--check", "--to", repository.folder / "leaderboards", new).code == 0


@pytest.mark.parametrize("of_study", [False, True])
def test_a_tuning_comes_with_the_record_that_embeds_it(cli, repository, tmp_path, of_study):
    plan = resolve(RunSpec(model="lsa", **TINY, recipe="smoke", seeds=(0, 1)))
    space = {"optimizers": ["adam"], "model_args": {"layers": [0]}}
    document = tune(plan, Settings(tmp_path / "out"), SearchSettings(trials=1, space=space))
    run_plans([tuned(plan, document)], Settings(tmp_path / "out"))
    boards = repository.folder / "leaderboards"
    assert cli("submit", tmp_path / "out" / "least-squares", "--to", boards).code == 0
    (tuning,) = (boards / "tunings").iterdir()
    if of_study:
        repository.git("clean", "--quiet", "-fd", "leaderboards/records")
        left_out = shutil.ignore_patterns("tun*")
        shutil.copytree(tmp_path / "out", boards / "studies" / "some", ignore=left_out)
    assert refused(repository) == []
    assert (repository.folder.parent / "new" / "leaderboards" / "tunings" / tuning.name).exists()


def test_code_alone_is_no_matter_of_this_check(repository):
    (repository.folder / "code.py").write_text("print('new')\n")
    (repository.folder / "link").symlink_to("/etc/passwd")
    assert refused(repository) == []
    assert not (repository.folder.parent / "new").exists()


def test_branches_with_several_last_common_commits_are_refused(repository, results):
    """Merging them would bring back the older code, which is in one of these commits."""
    add_records(repository, results)
    first = repository.commit()
    repository.git("checkout", "--quiet", "main")
    (repository.folder / "code.py").write_text("print('mended')\n")
    mended = repository.commit()
    repository.git("merge", "--quiet", "--no-ff", "--no-edit", first)
    tree = repository.git("rev-parse", f"{first}^{{tree}}")
    head = repository.git("commit-tree", tree, "-p", first, "-p", mended, "-m", "more records")
    with pytest.raises(UsageError, match="have 2 merge bases; rebase"):
        check(repository.folder, "main", head, repository.folder.parent / "new")


def test_tables_alone_are_refused(repository):
    table = repository.folder / "leaderboards" / "README.md"
    table.write_text("evilnet is the best\n")
    (problem,) = refused(repository)
    assert "leaderboards/README.md: tables follow from records and code" in problem
    # With code they may change: its own tests compare them.
    (repository.folder / "code.py").write_text("print('new')\n")
    assert refused(repository) == []


def with_code(repository: Repository, record: Path) -> None:
    (repository.folder / "code.py").write_text("print('new')\n")


def with_workflow(repository: Repository, record: Path) -> None:
    path = repository.folder / ".github" / "workflows" / "leaderboards.yml"
    path.parent.mkdir(parents=True)
    path.write_text("on: push\n")


def with_link(repository: Repository, record: Path) -> None:
    (record.parents[1] / "objects" / "aa").mkdir(exist_ok=True)
    (record.parents[1] / "objects" / "aa" / ("a" * 64 + ".jsonl")).symlink_to("/etc/passwd")


def with_linked_folder(repository: Repository, record: Path) -> None:
    (record.parents[1] / "other").symlink_to("least-squares")


def with_linked_table(repository: Repository, record: Path) -> None:
    (repository.folder / "leaderboards" / "rows.csv").symlink_to("/etc/passwd")


def with_submodule(repository: Repository, record: Path) -> None:
    head = repository.git("rev-parse", "HEAD")
    path = "leaderboards/records/least-squares/module"
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{head},{path}")
    (repository.folder / path).mkdir()


def with_unnamed_object(repository: Repository, record: Path) -> None:
    path = record.parents[1] / "objects" / "aa" / ("a" * 64 + ".jsonl")
    path.parent.mkdir(exist_ok=True)
    path.write_text("anything")


def with_other_file(repository: Repository, record: Path) -> None:
    (record.parent / "script.py").write_text("print()")


def with_odd_name(repository: Repository, record: Path) -> None:
    (record.parent / "a\n$(id)-0123456789abcdef.json").write_text("{}")


def with_damaged_record(repository: Repository, record: Path) -> None:
    record.write_text(record.read_text()[:-20])


def with_copy(repository: Repository, record: Path) -> None:
    shutil.copy(record, record.with_name("averaging-0123456789abcdef.json"))


def with_edited_record(repository: Repository, record: Path) -> None:
    next(record.parent.glob("zero*.json")).write_text("{}")


def with_deleted_record(repository: Repository, record: Path) -> None:
    next(record.parent.glob("zero*.json")).unlink()


def with_held_out(repository: Repository, record: Path) -> None:
    record.with_name(f"{record.stem}.heldout.json").write_text("{}")


def with_parquet(repository: Repository, record: Path) -> None:
    (repository.folder / "leaderboards" / "rows.parquet").write_bytes(b"forged")


def with_proof_of_training(repository: Repository, record: Path) -> None:
    proof = {"kind": "retrained", "created": "2026-11-24T10:00:00+00:00", "same_bits": True}

    def change(content):
        content["proof"] = {**proof, "environment": content["environment"]}

    reseal(record, change)


def with_other_tuning(repository: Repository, record: Path) -> None:
    path = repository.folder / "leaderboards" / "tunings" / "0123456789abcdef.json"
    path.parent.mkdir()
    path.write_text("{}")


def with_script_among_tunings(repository: Repository, record: Path) -> None:
    path = repository.folder / "leaderboards" / "tunings" / "script.py"
    path.parent.mkdir()
    path.write_text("print()")


def with_huge_file(repository: Repository, record: Path) -> None:
    record.write_text(" " * (2**24 + 1))


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (with_code, "code.py: submit records and other changes in separate pull requests"),
        (with_workflow, "leaderboards.yml: submit records and other changes"),
        (with_link, "git mode 120000"),
        (with_linked_folder, "git mode 120000"),
        (with_linked_table, "rows.csv: it is not a regular file"),
        (with_submodule, "git mode 160000"),
        (lambda repository, record: record.chmod(0o755), "git mode 100755"),
        (with_unnamed_object, "no record of this pull request names it"),
        (with_other_file, "script.py: it is neither a record nor a file"),
        (with_odd_name, "its name is not plain"),
        (with_damaged_record, "it is truncated or not a record"),
        (with_copy, "the record of this run is least-squares/averaging-"),
        (with_edited_record, "published records are neither edited nor deleted"),
        (with_parquet, "rows.parquet: it is built after merging"),
        (with_proof_of_training, "its proof says retrained"),
        (with_held_out, "held-out evaluations are made after merging"),
        (with_other_tuning, "no record of this pull request names it"),
        (with_script_among_tunings, "it is no tuning file"),
        (with_deleted_record, "published records are neither edited nor deleted"),
    ],
)
def test_anything_else_is_refused(repository, results, spoil, reason):
    record = add_records(repository, results)
    spoil(repository, record)
    problems = refused(repository)
    assert any(reason in problem for problem in problems), problems
    assert not any("\n" in problem for problem in problems)


@pytest.mark.slow
def test_the_command_runs_the_base_branch_and_says_why(repository, results):
    with_huge_file(repository, add_records(repository, results))
    head = repository.commit()
    repository.git("checkout", "--quiet", "main")
    out = repository.folder.parent / "new"
    module = [sys.executable, "-m", "iclbench.leaderboards.pull_request"]
    for revisions, reason in (
        (("HEAD", head), "a file may have 16,777,216 bytes"),
        (("HEAD", "--output=x"), "refused: git"),
    ):
        done = subprocess.run([*module, "--", *revisions, out], cwd=repository.folder,
                              env=dict(os.environ), capture_output=True, text=True,
                              check=False)  # fmt: skip
        assert done.returncode == 2
        assert reason in done.stdout
        assert "Traceback" not in done.stderr
    assert {path.name for path in repository.folder.iterdir()} == {
        ".git", "code.py", "leaderboards"}  # fmt: skip


def test_the_workflow_runs_no_code_of_the_pull_request():
    text = (ROOT / ".github" / "workflows" / "leaderboards.yml").read_text("utf-8")
    workflow = yaml.safe_load(text)
    (trigger,) = workflow[True]  # `on` is a boolean in YAML
    assert trigger == "pull_request_target"
    # A pull request to another branch would be checked by that branch's code; "edited": a new base.
    assert workflow[True][trigger]["branches"] == ["main"]
    assert "edited" in workflow[True][trigger]["types"]
    assert workflow["permissions"] == {"contents": "read"}
    assert "secrets." not in text
    steps = workflow["jobs"]["submit"]["steps"]
    checkouts = [step for step in steps if "checkout" in step.get("uses", "")]
    assert [step["with"]["ref"] for step in checkouts] == [
        "${{ github.event.pull_request.base.sha }}"
    ]
    assert checkouts[0]["with"]["persist-credentials"] is False
    # Nothing that the author writes, such as a branch's name, becomes part of a script.
    for step in steps:
        assert "${{" not in step.get("run", "")
        assert "git checkout" not in step.get("run", "")
