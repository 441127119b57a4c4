"""Records that name data or code of this machine are measured only for people whom one trusts."""

from __future__ import annotations

import pytest
from forging import reseal
from support import TINY

from iclbench import RecordError, RecordStore, RunSpec, run, verify
from iclbench.leaderboards.site.prompts import small_task
from iclbench.runs.store import read_record
from iclbench.runs.strangers import _is_known, _optimizers
from iclbench.training.optimizers import choice

TALE = "A cat sat on a mat. It was fat. "


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """The record of a run on the user's own texts."""
    folder = tmp_path_factory.mktemp("own")
    text = "<|endoftext|>".join(TALE * 8 + f"The end came {n} times. " for n in range(40))
    (folder / "own.txt").write_text(text)
    args = {"data": str(folder / "own.txt"), "vocabulary": 258}
    run("uniform", "stories", task_args=args, eval_prompts=4, out=folder / "results")
    (path,) = RecordStore(folder / "results").paths()
    return path


def test_it_is_refused_before_anything_is_read(path):
    data = path.parents[2] / "own.txt"
    data.rename(data.with_suffix(".away"))
    try:
        with pytest.raises(RecordError, match=r"data=.*own\.txt names data .* --trust"):
            verify(path, "cpu")
    finally:
        data.with_suffix(".away").rename(data)


def test_it_holds_where_reading_is_allowed(path):
    assert all(check.holds for check in verify(path, "cpu", trusted=True))


def test_the_commands_ask_too(path, tmp_path, cli):
    for command in (["verify"], ["submit", "--to", tmp_path / "boards"]):
        words = [*command, str(path), "--device", "cpu"]
        refused = cli(*words)
        assert refused.code == 2
        assert "names data that no package ships; --trust" in refused.err
        assert cli(*words, "--trust").code == 0


@pytest.mark.parametrize(
    "optimizer",
    ["cogapp.__main__.X", "torch.optim.__main__.X", "trio.SGD", "torch.utils.model_dump.X",
     "this.x", "pytorch_optimizer_x.SOAP"],
)  # fmt: skip
def test_no_code_of_the_machine_is_imported(tmp_path, monkeypatch, optimizer):
    run("lsa", **TINY, out=tmp_path)
    (path,) = RecordStore(tmp_path).paths()
    request = RunSpec.from_command(read_record(path).command)
    changed = request.model_copy(update={"recipe_args": {"optimizer": optimizer}}).command()
    monkeypatch.setattr(choice, "class_at", lambda path: pytest.fail(f"{path} is imported"))
    with pytest.raises(RecordError, match=r"names code to import; --trust"):
        verify(reseal(path, lambda content: content.update(command=changed)), "cpu")


def test_a_tuning_names_no_code_either():
    tuning = {
        "space": {"optimizers": [{"name": "adam", "args": {}}, {"name": "a.B", "args": {}}]},
        "best": {"recipe_args": {"optimizer": "c.D"}},
        "trials": [{"recipe_args": {"optimizer": "e.F"}}],
    }
    assert list(_optimizers([None, tuning])) == ["adam", "a.B", "c.D", "e.F"]
    assert list(_optimizers({"optimizers": [5, None, {}]})) == []


def test_optimizers_of_known_packages_are_taken():
    names = ("adam", "torch.optim.Adam", "pytorch_optimizer.SOAP", "iclbench_least_squares.x.Adam")
    assert all(map(_is_known, names))


def test_arguments_of_a_model_from_a_file_are_looked_at_too(tmp_path):
    run("baseconv", **TINY, out=tmp_path)
    (path,) = RecordStore(tmp_path).paths()
    names_file = {"path": "/etc/hostname"}
    path = reseal(path, lambda content: content["spec"]["model_args"].update(names_file))
    with pytest.raises(RecordError, match=r"path=/etc/hostname names data"):
        verify(path, "cpu")


def test_enormous_sizes_in_a_text_are_refused_before_they_are_read(tmp_path):
    run("richardson", "linear-system", eval_prompts=16, out=tmp_path)
    (path,) = RecordStore(tmp_path).paths()
    request = RunSpec.from_command(read_record(path).command)
    for sizes in ("2-99999999", "3,60000000", "2-" + "9" * 5000):
        bomb = request.model_copy(update={"task_args": {"sizes": sizes}})
        path = reseal(path, lambda content, bomb=bomb: content.update(command=bomb.command()))
        with pytest.raises(RecordError, match=r"sizes=.* is too large"):
            verify(path, "cpu")


def test_pages_do_not_build_a_task_on_a_stranger_s_data():
    with pytest.raises(RecordError, match="names data that no package ships"):
        small_task("stories", {"data": "/etc"}, 4)


def test_pulling_copies_it_unmeasured_only(path, tmp_path, cli):
    source = str(path.parents[1])
    refused = cli("pull", source, "--out", tmp_path / "pulled")
    assert refused.code != 0
    assert "--no-verify copies it" in refused.err
    assert not (tmp_path / "pulled").exists()
    assert cli("pull", source, "--no-verify", "--out", tmp_path / "pulled").code == 0
