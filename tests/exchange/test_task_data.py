"""`iclbench export`: prompts as Parquet with a card and metadata, byte-equal every time."""

from __future__ import annotations

import hashlib
import json
import logging
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from pyarrow import parquet

from iclbench import Task, UsageError, export_task, host, load_task, run
from iclbench.exchange.document import is_ours, read_export


def contents(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def task_config(name):
    return host().load("task", name, Task).Config


def numbers(folder, path="data/test.parquet"):
    """Every column as a tensor of its shape."""
    table = parquet.read_table(folder / path)
    return {name: torch.tensor(table[name].to_pylist()) for name in table.column_names}


def test_the_files_hold_the_evaluation_prompts_and_targets(tmp_path):
    made = export_task("least-squares", 1030, tmp_path, task_args={"dim": 2, "examples": 3}, seed=5)
    task = load_task("least-squares", dim=2, examples=3)
    (batch,) = task.evaluation_batches(1030, 5, torch.float32)
    table = parquet.read_table(tmp_path / "data" / "test.parquet")
    assert str(table.schema.field("x").type) == (
        "fixed_size_list<element: fixed_size_list<element: float>[2]>[3]"
    )
    assert str(table.schema.field("target").type).endswith("element: double>[1]>[1]")
    for name, values in {**batch.prompt._asdict(), "target": batch.target}.items():
        written = torch.tensor(table[name].to_pylist(), dtype=values.dtype)
        assert torch.equal(written, values), name
    assert made.digest == task.evaluation_digest(1030, 5)
    assert made == read_export(tmp_path)


def test_the_digest_is_that_of_a_record_on_the_same_prompts(tmp_path):
    record = run(
        model="zero", task="least-squares", eval_prompts=8, eval_seed=3, out=tmp_path / "r"
    )
    made = export_task("least-squares", 8, tmp_path / "data", seed=3)
    assert made.digest == record.main.digest


def test_the_same_arguments_give_the_same_bytes(tmp_path, monkeypatch):
    args = {"sizes": [3], "evaluate": [2, 3]}
    export_task("linear-system", 5, tmp_path / "a", task_args=args)
    torch.set_num_threads(2)
    export_task("linear-system", 5, tmp_path / "b", task_args=args)
    assert torch.get_num_threads() == 2
    first = contents(tmp_path / "a")
    assert first == contents(tmp_path / "b")
    assert set(first) == {"README.md", "croissant.json", "export.json",
                          "data/case-2.parquet", "data/case-3.parquet"}  # fmt: skip
    export_task("linear-system", 5, tmp_path / "c", task_args=args, seed=1)
    assert contents(tmp_path / "c")["data/case-3.parquet"] != first["data/case-3.parquet"]
    # The command in the document, with other defaults filled in, makes the same files.
    assert "sizes=[3]" in json.loads(first["export.json"])["command"]


def test_an_export_replaces_an_earlier_one_but_no_other_folder(tmp_path):
    export_task("linear-system", 2, tmp_path / "a", task_args={"evaluate": [2, 3]})
    export_task("least-squares", 2, tmp_path / "a")
    export_task("least-squares", 2, tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("ten years")
    with pytest.raises(UsageError, match="holds other files"):
        export_task("least-squares", 2, tmp_path / "other")
    with pytest.raises(UsageError, match="is a file: give a folder"):
        export_task("least-squares", 2, tmp_path / "other" / "thesis.txt")


@pytest.mark.parametrize("name", ["data/test.parquet", "README.md", "croissant.json"])
def test_a_file_that_was_changed_after_an_export_is_kept(cli, tmp_path, name):
    words = ("export", "--task", "least-squares", "--prompts", 2, tmp_path)
    export_task("least-squares", 2, tmp_path)
    (tmp_path / name).write_text("edited by hand")
    before = contents(tmp_path)
    outcome = cli(*words)
    assert outcome.code == 2
    assert f"{name} is not what `iclbench export` wrote" in outcome.err
    assert outcome.err.count("\n") == 1
    assert contents(tmp_path) == before
    # Without the changed file there is nothing to lose.
    (tmp_path / name).unlink()
    assert cli(*words).code == 0


def test_data_that_no_export_wrote_is_kept(tmp_path):
    export_task("least-squares", 2, tmp_path)
    mine = tmp_path / "data" / "case-2.parquet"
    mine.write_text("mine")
    export_task("least-squares", 3, tmp_path)
    with pytest.raises(UsageError, match=r"case-2\.parquet is not what `iclbench export` wrote"):
        export_task("linear-system", 2, tmp_path, task_args={"evaluate": [2, 3]})
    assert mine.read_text() == "mine"
    assert read_export(tmp_path).prompts == 3


@pytest.mark.parametrize("earlier", [0, 1, 2])
def test_an_export_that_was_interrupted_continues(cli, tmp_path, monkeypatch, earlier):
    """With no export before, one of other cases, or one of fewer prompts."""
    if earlier:
        args = {"task_args": {"evaluate": [2, 3]}} if earlier == 1 else {}
        export_task("linear-system", 2, tmp_path / "a", **args)
    words = ("export", tmp_path / "a", "--task", "linear-system", "--prompts", 3)
    replace, moved = Path.replace, []

    def failing(self, target):
        if len(moved) == 3:
            raise PermissionError(1, "Operation not permitted", str(self))
        moved.append(self)
        return replace(self, target)

    with monkeypatch.context() as context:
        context.setattr("iclbench.exchange.task_data.write_atomically", Path.write_bytes)
        context.setattr(Path, "replace", failing)
        outcome = cli(*words)
    assert outcome.code == 2
    assert "partly old, until the same command succeeds" in outcome.err
    assert cli(*words).code == 0
    export_task("linear-system", 3, tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


@pytest.mark.parametrize("text", ["{}", "[1]", "not JSON"])
def test_a_folder_whose_export_json_is_another_s_is_refused(tmp_path, text):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mine.parquet").write_text("mine")
    (tmp_path / "export.json").write_text(text)
    before = contents(tmp_path)
    with pytest.raises(UsageError, match="holds other files"):
        export_task("least-squares", 2, tmp_path)
    assert contents(tmp_path) == before


def test_every_task_can_be_exported(tmp_path):
    names = [
        entry.name
        for _, entry in host().entries("task")
        if not any(f.is_required() for f in task_config(entry.name).model_fields.values())
    ]
    assert len(names) > 10
    for name in names:
        made = export_task(name, 3, tmp_path / name)
        card = (tmp_path / name / "README.md").read_text("utf-8")
        assert made.command in card
        for file in made.files:
            data = (tmp_path / name / file.path).read_bytes()
            assert (hashlib.sha256(data).hexdigest(), len(data)) == (file.sha256, file.bytes)
            columns = numbers(tmp_path / name, file.path)
            for column in file.columns:
                assert columns[column.name].shape == (file.rows, *column.shape)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--task", "least-square", "--prompts", 3), "did you mean 'least-squares'"),
        (("--task", "least-squares", "--prompts", 0), "--prompts"),
        (("--task", "least-squares", "--prompts", 10**9), "must be a number from 1"),
        (("--task", "least-squares", "--prompts", 3, "--task-args", "dim=x"), "dim"),
        (("--task", "least-squares", "--prompts", 3, "--task-args", "dim=99999999"), "too large"),
        (("--task", "stories", "--prompts", 99999), "held-out"),
        (
            ("--task", "least-squares", "--prompts", 10**7, "--task-args", "dim=100000,examples=1"),
            "the disk of",
        ),
    ],
)
def test_a_bad_request_is_one_line_and_leaves_nothing(cli, tmp_path, words, message):
    outcome = cli("export", *words, tmp_path / "out")
    assert outcome.code == 2
    assert message in outcome.err
    assert not (tmp_path / "out").exists()


def test_a_signal_leaves_nothing_and_says_so(tmp_path):
    out = tmp_path / "out"
    words = ["export", "--task", "least-squares", "--prompts", "1000000", str(out)]
    with subprocess.Popen(
        [sys.executable, "-m", "iclbench", *words], stderr=subprocess.PIPE, text=True
    ) as process:
        while not list(out.glob("*/data/*.parquet")):
            assert process.poll() is None
            time.sleep(0.05)
        process.terminate()
        error = process.communicate()[1]
    assert process.returncode == 143
    assert error == "iclbench: interrupted; nothing was written\n"
    assert not out.exists()


def test_the_command_says_what_it_wrote(cli, tmp_path):
    outcome = cli("export", "--task", "read", "--prompts", 3, tmp_path / "out")
    assert outcome.code == 0
    assert "data/test.parquet: 3 prompts" in outcome.out


def test_a_damaged_document_is_refused(tmp_path):
    export_task("read", 2, tmp_path)
    path = tmp_path / "export.json"
    sound = json.loads(path.read_text())
    outside = {**sound, "files": [{**sound["files"][0], "path": "../../evil.parquet"}]}
    for content, message in [
        ("{", "does not describe an export"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "does not describe an export"),
        (json.dumps(outside), "files.0.path"),
        (json.dumps({**sound, "task": "../x"}), "not a plain name"),
        (json.dumps({**sound, "more": 1}), "unknown field"),
    ]:
        path.write_text(content)
        with pytest.raises(UsageError, match=message):
            read_export(tmp_path)


@pytest.mark.slow
def test_datasets_reads_the_folder(tmp_path, monkeypatch):
    import datasets

    export_task("categorical", 20, tmp_path / "out")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    loaded = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))
    rows = loaded["test"].with_format("numpy")[:]
    (batch,) = load_task("categorical").evaluation_batches(20, 0, torch.float32)
    assert torch.equal(torch.from_numpy(rows["x"]), batch.prompt.x)
    assert torch.equal(torch.from_numpy(rows["y"]), batch.prompt.y)


def test_the_card_says_which_cases_have_which_shapes(tmp_path):
    export_task("linear-system", 4, tmp_path, task_args={"sizes": [3], "evaluate": [2, 3]})
    card = (tmp_path / "README.md").read_text("utf-8")
    assert "| a | float32 | 2 × 2 in case_2 |" in card
    assert "| a | float32 | 3 × 3 in case_3 |" in card
    export_task("linear-system", 4, tmp_path / "one", task_args={"sizes": [3]})
    assert "| a | float32 | 3 × 3 |" in (tmp_path / "one" / "README.md").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("args", [{}, {"sizes": [3], "evaluate": [2, 3]}], ids=["one", "cases"])
def test_the_code_of_the_card_reads_the_folder(tmp_path, monkeypatch, args):
    export_task("linear-system", 4, tmp_path / "out", task_args=args)
    card = (tmp_path / "out" / "README.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    names: dict = {}
    exec(code.replace("FOLDER OR REPOSITORY", str(tmp_path / "out")), names)
    assert len(names["prompts"]["target"]) == 4
    assert ("`case_3`" in card) == bool(args)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_mlcroissant_validates_the_metadata_and_reads_the_records(tmp_path):
    mlcroissant = pytest.importorskip(
        "mlcroissant", reason="mlcroissant is not installed: pip install 'iclbench[croissant]'"
    )
    logging.getLogger("absl").setLevel(logging.ERROR)
    args = {"sizes": [3], "evaluate": [2, 3]}
    export_task("linear-system", 4, tmp_path, task_args=args)
    dataset = mlcroissant.Dataset(str(tmp_path / "croissant.json"))
    assert not dataset.metadata.issues.errors
    fields = {field.name: field for field in dataset.metadata.record_sets[0].fields}
    assert fields["a"].array_shape == "2,2"
    (first, *rest) = dataset.records(record_set="case_2")
    assert len(rest) == 3
    (batch, _) = load_task("linear-system", **args).evaluation_batches(4, 0, torch.float32)
    assert first["case_2/size"] == batch.prompt.size[0].item() == 2


def test_a_license_is_that_of_the_harness_s_own_tasks_alone(tmp_path, provide):
    export = export_task("read", 2, tmp_path / "own")
    assert "apache-2.0" in (tmp_path / "own" / "README.md").read_text("utf-8")
    assert is_ours(export)
    assert not is_ours(export.model_copy(update={"provenance": {"images": "elsewhere"}}))
    assert not is_ours(export.model_copy(update={"task": "of-another"}))
