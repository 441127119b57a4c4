"""Weights files: what `torch.save` wrote is answered with a conversion that works."""

from __future__ import annotations

import shlex

import pytest
import torch
from safetensors.torch import save
from support import run_python
from torch import nn

from iclbench import RecordError, UsageError
from iclbench.training.checkpoints import Checkpoint, load_state, load_weights, weights_bytes

STATE = {"weight": torch.arange(6.0).reshape(2, 3), "transposed": torch.ones(2, 3).mT}


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
def test_a_pt_file_is_refused(zipped, tmp_path):
    path = tmp_path / "model.pt"
    torch.save(STATE, path, _use_new_zipfile_serialization=zipped)
    with pytest.raises(RecordError, match=r"was written by torch\.save; .*Convert") as error:
        load_weights(path)
    assert "\n" not in str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize("key", [None, "model", "state_dict", "model_state_dict"])
def test_the_answer_to_a_pt_file_converts_it(tmp_path, key):
    """Training scripts keep the optimizer and counters beside the state dict."""
    path = tmp_path / "my model.pt"
    torch.save(STATE if key is None else {key: STATE, "optimizer": {"lr": 1.0}, "step": 3}, path)
    with pytest.raises(RecordError) as error:
        load_weights(path)
    _, _, command = str(error.value).partition("Convert the state dict: ")
    program, *arguments = shlex.split(command)
    assert program == "python"
    done = run_python(*arguments, path=tmp_path)
    assert done.returncode == 0, done.stderr
    (state,) = load_weights(tmp_path / "my model.safetensors").states.values()
    assert state.keys() == STATE.keys()
    assert all(torch.equal(state[name], STATE[name]) for name in STATE)


def test_any_other_file_is_damaged(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"\x80\x00\x00\x00\x00\x00\x00\x00{")
    with pytest.raises(RecordError, match="can't be read") as error:
        load_weights(path)
    assert "torch.save" not in str(error.value)


@pytest.mark.parametrize("text", ["[" * 100_000, "[]", "3", "{"])
def test_metadata_of_another_kind_is_refused_in_one_line(tmp_path, text):
    path = tmp_path / "c.safetensors"
    path.write_bytes(save({"a": torch.zeros(1)}, metadata={"iclbench": text}))
    # Weights need no metadata, and an empty list holds as little as none.
    for read in (Checkpoint.load, *([load_weights] if text != "[]" else [])):
        with pytest.raises(UsageError) as error:
            read(path)
        assert str(path) in str(error.value)


def test_a_state_dict_of_the_module_itself_fits_though_it_lacks_what_is_not_saved():
    module = torch.nn.BatchNorm1d(2)
    module.register_buffer("ranks", torch.arange(2), persistent=False)
    load_state(module, module.state_dict(), "own")
    load_state(module, {**module.state_dict(), "ranks": torch.tensor([5, 6])}, "with ranks")
    assert module.ranks.tolist() == [5, 6]
    state = {name: value for name, value in module.state_dict().items() if name != "running_mean"}
    with pytest.raises(RecordError, match="does not fit the model: running_mean is missing"):
        load_state(module, state, "own")


def test_a_state_dict_of_tied_weights_fits_with_each_name_or_with_one():
    module = torch.nn.ModuleDict({"first": torch.nn.Linear(2, 2), "second": torch.nn.Linear(2, 2)})
    module["second"].weight = module["first"].weight
    state = {name: value + 1 for name, value in module.state_dict().items()}
    load_state(module, state, "own")
    assert torch.equal(module["second"].weight, state["first.weight"])
    load_state(module, {name: value * float("nan") for name, value in state.items()}, "diverged")
    load_state(module, state, "own")
    untied = {**state, "second.weight": state["first.weight"] + 1}
    with pytest.raises(RecordError, match=r"first\.weight and second\.weight differ"):
        load_state(module, untied, "untied")
    del state["second.weight"]
    load_state(module, state, "one name")
    del state["first.weight"]
    with pytest.raises(RecordError, match=r"does not fit the model: first\.weight is missing"):
        load_state(module, state, "none")


def test_tensors_that_share_memory_are_written_apart(tmp_path):
    whole = torch.arange(6.0).reshape(2, 3)
    state = {"whole": whole, "row": whole[1], "turned": whole.mT, "spread": torch.ones(1).expand(3)}
    Checkpoint(dict(state), {}).save(tmp_path / "checkpoint")
    (tmp_path / "weights").write_bytes(weights_bytes({0: state}, "m", {}))
    read = [Checkpoint.load(tmp_path / "checkpoint").tensors]
    read.append(load_weights(tmp_path / "weights").states[0])
    for tensors in read:
        assert tensors.keys() == state.keys()
        assert all(torch.equal(tensors[name], tensor) for name, tensor in state.items())


def test_only_digits_of_ascii_are_seeds(tmp_path):
    (tmp_path / "weights").write_bytes(save({"٣/weight": torch.ones(2)}))
    assert load_weights(tmp_path / "weights").states.keys() == {None}


def test_a_table_that_a_module_computes_may_be_of_another_length():
    class Positions(nn.Module):
        def __init__(self, length):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(2))
            self.register_buffer("table", torch.arange(length), persistent=False)

    longer, shorter = Positions(5), Positions(3)
    load_state(longer, {"weight": torch.ones(2), "table": shorter.table}, "the file")
    assert torch.equal(longer.weight, torch.ones(2))
    assert torch.equal(longer.table, torch.arange(5))
    # One of the same length is what training left.
    load_state(longer, {"weight": torch.ones(2), "table": torch.full((5,), 7)}, "the file")
    assert longer.table.tolist() == [7] * 5
