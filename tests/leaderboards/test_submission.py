"""Submitting: records that were edited, are unknown, or would replace a row are refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from safetensors.numpy import load, save

from iclbench import RecordStore, run
from iclbench.api.spec import digest_of
from iclbench.runs.store import read_record

TINY = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "recipe": "smoke",
        "seeds": 2, "eval_prompts": 32}  # fmt: skip


@pytest.fixture(scope="module")
def sources(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    run(model="baseconv", **TINY, out=folder)
    run(model="zero", **TINY, out=folder)
    return folder


@pytest.fixture
def results(sources, tmp_path) -> Path:
    return Path(shutil.copytree(sources, tmp_path / "results"))


def trained(folder: Path) -> Path:
    return next(folder.glob("*/baseconv*.json"))


def reseal(path: Path, change) -> None:
    """Edit the record and mend its digest, as a reader of the code could."""
    content = json.loads(path.read_text())
    change(content)
    content["digest"] = digest_of({k: v for k, v in content.items() if k != "digest"})
    path.write_text(json.dumps(content))


def test_sound_records_are_copied_with_their_files(cli, results, tmp_path):
    outcome = cli("submit", results, "--to", tmp_path / "boards")
    assert outcome.code == 0
    assert outcome.out.startswith("## 2 records, all ")
    for text in ("baseconv", "▲ solver", "● trained", "(iclbench ", "iclbench run --model zero"):
        assert text in outcome.out
    store = RecordStore(tmp_path / "boards" / "records")
    copied = sorted(p.name for p in store.folder.rglob("*") if p.is_file())
    assert copied == sorted(p.name for p in results.glob("*/*") if p.suffix != ".tmp")
    assert cli("verify", store.folder).code == 0
    again = cli("submit", results, "--to", tmp_path / "boards")
    assert again.code == 0
    assert "already published" in again.err


@pytest.fixture(scope="module")
def stories(tmp_path_factory) -> Path:
    """A record with the answers of a grader."""
    folder = tmp_path_factory.mktemp("stories")
    run(model="transformer", task="stories", recipe="smoke", seeds=1, eval_prompts=4,
        model_args={"layers": 1, "width": 8}, grader="text-statistics", out=folder)  # fmt: skip
    return folder


def test_a_grader_s_answers_are_published_so_that_the_copy_verifies(cli, stories, tmp_path):
    assert cli("submit", stories, "--to", tmp_path / "boards").code == 0
    (path,) = (tmp_path / "boards" / "records" / "stories").glob("*.json")
    record = read_record(path)
    names = {path.name, *(reference.file for reference in record.files())}
    assert record.grader.answers.file in names
    assert {p.name for p in path.parent.iterdir()} == names
    outcome = cli("verify", path)
    assert outcome.code == 0, outcome.err
    # The site offers them too.
    assert cli("leaderboard", "site", tmp_path / "site", "--from", tmp_path / "boards").code == 0
    assert {p.name for p in (tmp_path / "site" / "records" / "stories").iterdir()} == names


def test_answers_of_another_name_or_content_are_refused(cli, stories, tmp_path):
    results = Path(shutil.copytree(stories, tmp_path / "results"))
    (path,) = results.glob("*/*.json")
    answers = path.parent / read_record(path).grader.answers.file
    answers.write_bytes(answers.read_bytes() + b" ")
    assert "was changed" in cli("submit", results, "--to", tmp_path / "boards").err
    reseal(path, lambda c: c["grader"]["answers"].update(file="secrets.jsonl"))
    assert "not the name of its answers" in cli("submit", path, "--to", tmp_path / "boards").err
    assert not (tmp_path / "boards").exists()


def test_a_check_copies_nothing(cli, results, tmp_path):
    assert cli("submit", results, "--to", tmp_path / "boards", "--check").code == 0
    assert not (tmp_path / "boards").exists()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda c: c["metrics"]["squared_error"].update(median=1e-9), "is not that of"),
        (lambda c: c["evaluation"].update(digest="0" * 64), "prompts are not those"),
        (lambda c: c["seeds"][0]["metrics"]["squared_error"].update(mean=0.1), "is not that of"),
        (lambda c: c.update(parameters=12), "numbers do not hold; parameters"),
        (lambda c: c["spec"].update(model="transformer"), "its id is not its spec's"),
        (lambda c: c["plugins"][0].update(distribution="unknown"), "without its distribution"),
        (lambda c: c["plugins"][0].update(distribution="other"), "not to other"),
        (lambda c: c.update(plugins=c["plugins"][:1]), "is not named"),
        (lambda c: c.update(weights=None), "needs its weights"),
        (lambda c: c["per_prompt"].update(file="../../secrets"), "is not the name of its prompts"),
    ],
)
def test_an_edit_that_mends_the_digest_is_refused(cli, results, tmp_path, change, reason):
    reseal(trained(results), change)
    outcome = cli("submit", results, "--to", tmp_path / "boards")
    assert outcome.code == 2
    assert reason in outcome.err
    assert f"refused: {outcome.err.partition('error: ')[2].strip()}" in outcome.out
    assert not (tmp_path / "boards").exists()  # not the sound one either


def test_an_edit_that_does_not_is_refused(cli, results, tmp_path):
    path = trained(results)
    path.write_text(path.read_text().replace('"parameters": ', '"parameters": 1'))
    outcome = cli("submit", path, "--to", tmp_path / "boards")
    assert outcome.code == 2
    assert "its digest does not match" in outcome.err


def test_edited_values_of_prompts_are_refused(cli, results, tmp_path):
    """Statistics, digests and names all fit the better values; measuring again does not."""
    path = trained(results)
    record = read_record(path)
    arrays = load((path.parent / record.per_prompt.file).read_bytes())
    arrays["metric/squared_error"] = arrays["metric/squared_error"] * 0.01

    from iclbench.runs.statistics import summarize

    store = RecordStore(results)
    values = arrays["metric/squared_error"]
    better = record.model_copy(
        update={
            "per_prompt": store.write_file(record.spec, "prompts", save(arrays)),
            "metrics": {"squared_error": summarize(values, "squared")},
            "seeds": [
                seed.model_copy(
                    update={"metrics": {"squared_error": summarize(values[i : i + 1], "squared")}}
                )
                for i, seed in enumerate(record.seeds)
            ],
        }
    )
    store.write(better)
    outcome = cli("submit", path, "--to", tmp_path / "boards")
    assert outcome.code == 2
    assert "numbers do not hold; squared_error" in outcome.err


def test_a_published_row_is_not_replaced(cli, results, tmp_path):
    boards = tmp_path / "boards"
    assert cli("submit", results, "--to", boards).code == 0
    path = trained(results)
    reseal(path, lambda c: c.update(created="2020-01-01T00:00:00+00:00"))
    before = trained(boards / "records").read_bytes()
    outcome = cli("submit", path, "--to", boards)
    assert outcome.code == 2
    assert "no row is replaced" in outcome.err
    assert trained(boards / "records").read_bytes() == before


def test_an_unknown_task_version_is_refused(cli, results, tmp_path, monkeypatch):
    from iclbench.runs.load import load_task

    monkeypatch.setattr(type(load_task("least-squares")), "version", 2)
    outcome = cli("submit", results, "--to", tmp_path / "boards")
    assert outcome.code == 2
    assert "version 1 of least-squares is not known" in outcome.err


def test_another_name_or_too_large_weights_are_refused(cli, results, tmp_path, monkeypatch):
    path = trained(results)
    other = path.with_name("better-0123456789abcdef.json")
    other.write_bytes(path.read_bytes())
    assert "is named baseconv-" in cli("submit", other, "--to", tmp_path / "boards").err
    monkeypatch.setattr("iclbench.leaderboards.submission.LARGEST_WEIGHTS", 1000)
    assert "are published" in cli("submit", path, "--to", tmp_path / "boards").err


def test_a_sample_is_always_the_same_and_from_every_task(cli, results):
    run(model="zero", **{**TINY, "task": "least-squares-prefixes"}, out=results)
    outcomes = [cli("verify", results, "--sample", 2) for _ in range(2)]
    assert outcomes[0] == outcomes[1]
    assert outcomes[0].code == 0
    assert "a sample: 2 of 3 records" in outcomes[0].out
    assert "2 of 2 records hold" in outcomes[0].out
    assert f"{Path('least-squares-prefixes') / 'zero'}" in outcomes[0].out
