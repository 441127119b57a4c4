"""Submitting: records that were edited, are unknown, or would replace a row are refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from forging import reseal, with_values

from iclbench import RecordStore, RunSpec, run
from iclbench.leaderboards.escaping import markdown
from iclbench.runs.plan import resolve
from iclbench.runs.run import run_plans
from iclbench.runs.settings import Settings
from iclbench.runs.store import read_record, read_values
from iclbench.runs.tuned import read_tuning, tuned
from iclbench.sweeps.tuning.search import tune
from iclbench.sweeps.tuning.settings import SearchSettings

TINY = {"task": "least-squares", "recipe": "smoke", "seeds": 2, "eval_prompts": 32,
        "task_args": {"dim": 2, "examples": 4}}  # fmt: skip


@pytest.fixture(scope="module")
def sources(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    run(model="baseconv", **TINY, out=folder)
    run(model="zero", **TINY, out=folder)
    return folder


@pytest.fixture
def results(sources, tmp_path) -> Path:
    return Path(shutil.copytree(sources, tmp_path / "results"))


def main(content: dict) -> dict:
    return content["evaluations"]["main"]


def trained(folder: Path) -> Path:
    return next(folder.glob("*/baseconv*.json"))


def test_sound_records_are_copied_with_their_files(cli, results, tmp_path):
    outcome = cli("submit", results, "--to", tmp_path / "boards")
    assert outcome.code == 0
    assert outcome.out.startswith("## 2 records, all ")
    for text in ("baseconv", "▲ solver", "○ trained", "(iclbench ", "iclbench run --model zero"):
        assert text in outcome.out
    store = RecordStore(tmp_path / "boards" / "records")
    copied = sorted(p.name for p in store.folder.rglob("*") if p.is_file())
    assert copied == sorted(p.name for p in results.rglob("*") if p.is_file())
    assert cli("verify", store.folder).code == 0
    again = cli("submit", results, "--to", tmp_path / "boards")
    assert again.code == 0
    assert "already published" in again.err


@pytest.fixture(scope="module")
def stories(tmp_path_factory) -> Path:
    """A record with the answers of a grader."""
    folder = tmp_path_factory.mktemp("stories")
    run(model="transformer", task="stories", recipe="smoke", seeds=1, eval_prompts=32,
        model_args={"layers": 1, "width": 8}, grader="text-statistics", out=folder)  # fmt: skip
    return folder


def test_a_grader_s_answers_are_published_so_that_the_copy_verifies(cli, stories, tmp_path):
    assert cli("submit", stories, "--to", tmp_path / "boards").code == 0
    (path,) = (tmp_path / "boards" / "records" / "stories").glob("*.json")
    record = read_record(path)
    names = {f"stories/{path.name}", *(reference.name for reference in record.files())}
    assert record.grader.answers.name in names
    assert files_in(path.parents[1]) == names
    outcome = cli("verify", path)
    assert outcome.code == 0, outcome.err
    # The site offers them too.
    assert cli("leaderboard", "site", tmp_path / "site", "--from", tmp_path / "boards").code == 0
    assert files_in(tmp_path / "site" / "records") == names


def files_in(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def test_answers_of_another_content_are_refused(cli, stories, tmp_path):
    results = Path(shutil.copytree(stories, tmp_path / "results"))
    (path,) = results.glob("*/*.json")
    answers = results / read_record(path).grader.answers.name
    answers.write_bytes(answers.read_bytes() + b" ")
    assert "was changed" in cli("submit", results, "--to", tmp_path / "boards").err
    assert not (tmp_path / "boards").exists()


def test_a_check_copies_nothing(cli, results, tmp_path):
    assert cli("submit", results, "--to", tmp_path / "boards", "--check").code == 0
    assert not (tmp_path / "boards").exists()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda c: main(c)["metrics"]["squared_error"].update(median=1e-9), "do not follow from"),
        (lambda c: main(c).update(digest="0" * 64), "differ: evaluation digest"),
        (lambda c: main(c)["seeds"][0]["squared_error"].update(mean=0.1), "do not follow from"),
        (lambda c: c.update(parameters=12), "differ: parameters"),
        (lambda c: c["spec"].update(model="transformer"), "weights are those of 'baseconv'"),
        (lambda c: c["plugins"][0].update(distribution="other"), "differ: plugins"),
        (lambda c: c.update(plugins=c["plugins"][:1]), "differ: plugins"),
        (lambda c: c.update(weights=None), "differ: weights"),
        (lambda c: c["weights"].update(sha256="../../secrets"), "is not a record"),
    ],
)
def test_an_edit_that_mends_the_digest_is_refused(cli, results, tmp_path, change, reason):
    reseal(trained(results), change)
    outcome = cli("submit", results, "--to", tmp_path / "boards")
    assert outcome.code == 2
    assert reason in outcome.err
    reason_line = outcome.err.partition("error: ")[2].partition("\n")[0]
    assert f"refused: {markdown(reason_line)}" in outcome.out
    published = [path.name for path in RecordStore(tmp_path / "boards" / "records").paths()]
    assert [name.partition("-")[0] for name in published] == ["zero"]  # the sound one


def test_prompts_too_few_for_a_held_out_comparison_are_refused(cli, tmp_path):
    for model in ("baseconv", "zero"):
        run(model=model, **{**TINY, "eval_prompts": 2}, out=tmp_path / "few")
    outcome = cli("submit", tmp_path / "few", "--to", tmp_path / "boards")
    assert outcome.code != 0
    assert "2 prompts are too few to compare it with held-out ones: at least 32" in outcome.err
    assert "## 1 record, all " in outcome.out  # nothing is drawn for the solver


def test_an_edit_that_does_not_is_refused(cli, results, tmp_path):
    path = trained(results)
    path.write_text(path.read_text().replace('"parameters": ', '"parameters": 1'))
    outcome = cli("submit", path, "--to", tmp_path / "boards")
    assert outcome.code == 2
    assert "its digest does not match" in outcome.err


def test_edited_values_of_prompts_are_refused(cli, results, tmp_path):
    """Statistics, digests and names all fit the better values; measuring again does not."""
    path = trained(results)
    values = read_values(path, read_record(path).main.values)["squared_error"]
    with_values(path, {"squared_error": values * 0.01})
    outcome = cli("submit", path, "--to", tmp_path / "boards")
    assert outcome.code == 2
    assert "differ: squared_error" in outcome.err


def test_a_published_row_is_not_replaced(cli, results, tmp_path):
    boards = tmp_path / "boards"
    assert cli("submit", results, "--to", boards).code == 0
    path = trained(results)
    reseal(path, lambda c: c.update(created="2020-01-01T00:00:00+00:00"))
    before = trained(boards / "records").read_bytes()
    outcome = cli("submit", path, "--to", boards)
    assert outcome.code == 2
    assert "rows are not replaced" in outcome.err
    assert trained(boards / "records").read_bytes() == before


def test_an_unknown_task_version_is_refused(cli, results, tmp_path, monkeypatch):
    from iclbench.runs.load import load_task

    monkeypatch.setattr(type(load_task("least-squares")), "version", 99)
    outcome = cli("submit", results, "--to", tmp_path / "boards")
    assert outcome.code == 2
    assert "version 2 of least-squares, which is now version 99" in outcome.err


def test_another_name_or_too_large_weights_are_refused(cli, results, tmp_path, monkeypatch):
    path = trained(results)
    other = path.with_name("better-0123456789abcdef.json")
    other.write_bytes(path.read_bytes())
    assert "its name must be baseconv-" in cli("submit", other, "--to", tmp_path / "boards").err
    monkeypatch.setattr("iclbench.leaderboards.publishable.LARGEST_WEIGHTS", 1000)
    assert "the limit is" in cli("submit", path, "--to", tmp_path / "boards").err


def test_a_sample_is_always_the_same_and_from_every_task(cli, results):
    run(model="zero", **{**TINY, "task": "least-squares-prefixes"}, out=results)
    outcomes = [cli("verify", results, "--sample", 2) for _ in range(2)]
    assert outcomes[0] == outcomes[1]
    assert outcomes[0].code == 0
    assert "a sample: 2 of 3 records" in outcomes[0].out
    assert "2 of 2 records hold" in outcomes[0].out
    assert f"{Path('least-squares-prefixes') / 'zero'}" in outcomes[0].out


def test_a_published_record_says_that_it_was_evaluated_here(cli, results, tmp_path):
    assert cli("submit", results, "--to", tmp_path / "boards").code == 0
    for path in RecordStore(tmp_path / "boards" / "records").paths():
        assert read_record(path).proof.kind == "evaluated"
    assert all(read_record(path).proof is None for path in RecordStore(results).paths())


def test_a_record_without_answers_gets_them_when_it_is_published(cli, results, tmp_path):
    path = next(results.glob("*/zero*.json"))
    before = read_record(path).main.answers
    reseal(path, lambda content: content["evaluations"]["main"].pop("answers"))
    assert cli("submit", path, "--to", tmp_path / "boards").code == 0
    (published,) = RecordStore(tmp_path / "boards" / "records").paths()
    assert read_record(published).main.answers == before


def test_measuring_a_record_again_renews_its_proof(cli, results):
    path = next(results.glob("*/zero*.json"))
    reseal(path, lambda content: content["plugins"][0].update(source="0" * 64))
    assert "stale: made by other code of iclbench" in cli("verify", path, "--all").out
    assert cli("verify", path, "--write").code == 0
    proof = read_record(path).proof
    assert proof.kind == "evaluated"
    assert [plugin.name for plugin in proof.plugins] == [p.name for p in read_record(path).plugins]
    assert "stale" not in cli("verify", path, "--all").out


def test_a_proof_of_training_again_is_not_taken_from_outside(cli, results, tmp_path):
    outcome = cli("verify", trained(results), "--retrain", "--write")
    assert outcome.code == 0, outcome.err
    assert "proof: retrained" in outcome.out
    outcome = cli("submit", trained(results), "--to", tmp_path / "boards")
    assert outcome.code == 2
    assert "its proof says retrained" in outcome.err


def test_damaged_records_and_missing_plugins_stop_no_other(cli, results, tmp_path):
    damaged = results / "least-squares" / "damaged-0123456789abcdef.json"
    damaged.write_text("[" * 100_000)
    path = next(results.glob("*/zero*.json"))
    reseal(path, lambda c: c["plugins"][1].update(name="ssm", distribution="iclbench-ssm"))
    for said, verb in (
        (f"{trained(results)}: all ", ("verify", results)),
        ("1 record, all", ("submit", results, "--to", tmp_path / "boards")),
    ):
        outcome = cli(*verb)
        assert outcome.code == 2
        lines = outcome.err.splitlines()
        nested = f"{damaged}: it is not a record"
        missing = f"{path}: needs iclbench-ssm 0.1.0, which is not installed"
        assert all(any(reason in line for line in lines) for reason in (nested, missing))
        assert said in outcome.out
    published = list(RecordStore(tmp_path / "boards" / "records").paths())
    assert [p.name.partition("-")[0] for p in published] == ["baseconv"]


def test_trained_rows_are_evaluated_once_on_held_out_prompts(cli, results, tmp_path):
    boards = tmp_path / "boards"
    outcome = cli("submit", "--held-out", results, "--to", boards)
    assert outcome.code == 0, outcome.err
    (path,) = (boards / "records").glob("*/*.heldout.json")
    assert path.name == f"{trained(results).stem}.heldout.json"
    before = path.read_bytes()
    assert cli("submit", "--held-out", results, "--to", boards).code == 0
    assert path.read_bytes() == before
    assert cli("verify", boards / "records").code == 0
    assert cli("leaderboard", "build", boards, "--no-parquet").code == 0
    page = (boards / "tasks" / "least-squares.md").read_text("utf-8")
    assert "| held out |" in " ".join(page.split())
    assert "held_out_score" in (boards / "rows.csv").read_text("utf-8")
    site = tmp_path / "site"
    assert cli("leaderboard", "site", site, "--from", boards).code == 0
    assert (site / "records" / path.relative_to(boards / "records")).exists()


def test_loaded_weights_are_evaluated_on_held_out_prompts_too(cli, results, tmp_path):
    record = read_record(trained(results))
    weights = RecordStore(results).objects.path(record.weights_file)
    args = {name: TINY[name] for name in ("task", "task_args", "eval_prompts")}
    run(model="baseconv", **args, model_args=record.spec.model_args, weights=str(weights),
        out=tmp_path / "loaded")  # fmt: skip
    outcome = cli("submit", "--held-out", tmp_path / "loaded", "--to", tmp_path / "boards")
    assert outcome.code == 0, outcome.err
    assert len(list((tmp_path / "boards" / "records").glob("*/*.heldout.json"))) == 1


def test_a_tuning_is_published_in_a_file_named_by_its_content(cli, results, tmp_path):
    folder, boards = tmp_path / "tuned", tmp_path / "boards"
    request = RunSpec(model="baseconv", **{**TINY, "seeds": (5, 6)})
    document = tune(
        resolve(request), Settings(folder), SearchSettings(trials=1, space={"optimizers": ["adam"]})
    )
    run_plans([tuned(resolve(request), document)], Settings(folder))
    (path,) = RecordStore(folder).paths()
    outcome = cli("submit", path, "--to", boards)
    assert outcome.code == 0, outcome.err
    (published,) = (boards / "tunings").iterdir()
    assert read_tuning(published) == document
