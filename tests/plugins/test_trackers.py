"""What each tracker writes, read back with its own package."""

from __future__ import annotations

import json
import sys

import pytest
from support import TINY, run_python

from iclbench import UsageError, run, tracking
from iclbench.api.config import parse_config
from iclbench.runs.store import is_record
from iclbench_trackers.mlflow_tracker import MLflowConfig

SMALL = {**TINY, "model": "transformer", "model_args": {"layers": 1, "width": 4},
         "recipe_args": {"steps": 3, "batch": 2}}  # fmt: skip


def test_tensorboard_reads_losses_settings_and_results(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with tracking("tensorboard", out=tmp_path):
        record = run(**SMALL, out=tmp_path)
    folder = tmp_path / "tensorboard" / "least-squares" / f"transformer-{record.id}"
    events = EventAccumulator(str(folder)).Reload()
    losses = {event.step: event.value for event in events.Scalars("loss/seed-1")}
    for step, point in zip(record.training.curve_steps, record.training.curve, strict=True):
        assert losses[step] == pytest.approx(point[1], rel=1e-6)
    (score,) = events.Scalars("result/score")
    digits = record.metrics["squared_error"].digits.mean
    assert score.value == pytest.approx(digits, rel=1e-6)
    (text,) = events.Tensors("settings/text_summary")
    assert '"model_args.width": 4' in text.tensor_proto.string_val[0].decode()


def test_a_folder_may_be_in_the_home_folder(tmp_path, monkeypatch):
    pytest.importorskip("tensorboard")
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.chdir(tmp_path)
    with tracking("tensorboard", args={"tensorboard": {"folder": "~/tb"}}):
        run(**SMALL, out=tmp_path / "out")
    assert list((home / "tb").rglob("events*"))
    assert not (tmp_path / "~").exists()


def test_a_password_in_the_address_of_mlflow_is_refused_and_not_shown():
    for uri in ("https://ann:secret@host/x", "postgresql://ann:secret@db/mlflow"):
        with pytest.raises(UsageError, match="give the address by MLFLOW_TRACKING_URI") as refused:
            parse_config(MLflowConfig, {"uri": uri}, "tracker mlflow")
        assert "secret" not in str(refused.value)
    for uri in ("https://host/a@b", "file:///data/mlruns", "mlruns"):
        assert parse_config(MLflowConfig, {"uri": uri}, "tracker mlflow").uri == uri


def test_tensorboard_keeps_runs_of_one_spec_apart(tmp_path):
    pytest.importorskip("tensorboard")
    for _ in range(2):
        with tracking("tensorboard", args={"tensorboard": {"folder": str(tmp_path / "logs")}}):
            run(model="zero", task="least-squares", eval_prompts=8, force=True, out=tmp_path)
    names = sorted(path.name for path in (tmp_path / "logs" / "least-squares").iterdir())
    assert names[1] == f"{names[0]}-2"


@pytest.mark.parametrize("name", ["tensorboard", "wandb", "mlflow"])
def test_a_missing_package_is_one_line_that_says_how_to_install_it(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    message = rf"tracker {name}: {name} is not installed; pip install 'iclbench\[{name}\]'"
    with pytest.raises(UsageError, match=message), tracking(name):
        pass


PROGRAM = """
import json, sys
import iclbench
name, out, args, spec = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), json.loads(sys.argv[4])
with iclbench.tracking(name, out=out, args={name: args}):
    record = iclbench.run(**spec, out=out, device="cpu")
print(json.dumps({"id": record.id, "loss": record.training.curve[-1][1], "digest": record.digest}))
"""


def tracked(name, tmp_path, **args):
    """What a run in a process of its own says, and its record; nothing may be dropped."""
    # Their services, threads and hooks at exit stay out of the tests' process.
    done = run_python("-c", PROGRAM, name, str(tmp_path), json.dumps(args), json.dumps(SMALL),
                      path=tmp_path, HOME=str(tmp_path), WANDB_API_KEY="", WANDB_MODE="offline",
                      MLFLOW_TRACKING_URI="", WANDB_X_SERVICE_WAIT="300",
                      WANDB_INIT_TIMEOUT="300")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "dropped" not in done.stderr, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_mlflow_writes_a_run_into_a_folder(tmp_path):
    pytest.importorskip("mlflow", reason="mlflow is not installed: pip install 'iclbench[mlflow]'")
    said = tracked("mlflow", tmp_path)
    (run_folder,) = [path.parent for path in (tmp_path / "mlflow").glob("*/*/params")]
    assert (run_folder / "params" / "model_args.width").read_text() == "4"
    assert (run_folder / "tags" / "id").read_text() == said["id"]
    *_, last = (run_folder / "metrics" / "loss" / "seed-1").read_text().splitlines()
    _, value, step = last.split()
    assert (float(value), step) == (pytest.approx(said["loss"]), "3")
    # It is no record of OUT, in which the folder lies.
    assert not is_record(run_folder / "artifacts" / "record.json")
    record = json.loads((run_folder / "artifacts" / "record.json").read_text())["record"]
    assert record["digest"] == said["digest"]
    assert "status: 3" in (run_folder / "meta.yaml").read_text()  # finished


@pytest.mark.slow
def test_wandb_writes_a_run_offline(tmp_path):
    pytest.importorskip("wandb", reason="wandb is not installed: pip install 'iclbench[wandb]'")
    said = tracked("wandb", tmp_path, mode="offline")
    (file,) = (tmp_path / "wandb").glob("offline-run-*/run-*.wandb")
    content = file.read_bytes()
    for text in (said["id"], said["digest"], "loss/seed-1", "result/score", "model_args.width"):
        assert text.encode() in content, text
    # Neither the machine nor its user is described.
    assert not list((tmp_path / "wandb").glob("**/wandb-metadata.json"))
