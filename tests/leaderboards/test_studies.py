"""Studies: figures by name from the sweep files of plugins, their captions and formats."""

from __future__ import annotations

import builtins
import shutil
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from browser import find

from iclbench import UsageError
from iclbench.discovery import Plugin
from iclbench.kit.whole import checks_of_plugin
from iclbench.leaderboards.studies import (
    Study,
    _has_figure,
    caption,
    find_study,
    studies,
    study_records,
)
from iclbench.plugins import host
from iclbench.sweeps.sweep import sweep

SMALL = """# A study of descent. More of it.
[figure]
x = "model_args.steps"
title = "descent"

[defaults]
task = "least-squares"
eval_prompts = 16

[[grid]]
model = "gradient-descent"
model_args = { steps = [1, 2] }

[[grid]]
model = "baseconv"
recipe = "smoke"
seeds = 2

[sizes.large]
defaults = { eval_prompts = 32 }
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    (folder / "small.toml").write_text("# Figure 0: descent.\n" + SMALL)
    sweep(folder / "small.toml", out=folder / "records")
    return folder


def test_a_folder_does_not_hide_the_study_of_its_name(tmp_path, monkeypatch, cli):
    (tmp_path / "poster").mkdir()
    monkeypatch.chdir(tmp_path)
    assert cli("sweep", "poster", "--status").code == 0
    drawn = cli("leaderboard", "figure", "poster", "--records", "poster")
    assert "give the name of one study" not in drawn.err
    (tmp_path / "results").mkdir()
    assert "give the name of one study" in cli("leaderboard", "figure", "results").err


def test_studies_of_plugins_have_names(cli):
    names = [known.name for known in studies(host())]
    assert {"least-squares/depth", "primitives/depth", "linear-systems/poster"} <= set(names)
    listed = cli("leaderboard", "figure")
    assert [line.split()[0] for line in listed.out.splitlines()[2:]] == names
    assert find_study("poster", host()).name == "linear-systems/poster"
    assert "least-squares/depth, primitives/depth" in cli("leaderboard", "figure", "depth").err
    assert "unknown study 'postr'; did you mean" in cli("leaderboard", "figure", "postr").err


def test_a_file_that_ends_like_another_format_is_refused(cli, study, tmp_path):
    page = tmp_path / "page.html"
    outcome = cli("leaderboard", "figure", study / "small.toml", "--records", study / "records",
                  "--file", page, "--format", "png")  # fmt: skip
    assert outcome.code == 2
    assert "would hold png, not html" in outcome.err
    assert not page.exists()


def test_a_study_s_figure_is_drawn_from_its_records_with_a_caption(cli, study, tmp_path):
    page = tmp_path / "page.html"
    outcome = cli("leaderboard", "figure", study / "small.toml", "--records", study / "records",
                "--file", page)  # fmt: skip
    assert outcome.code == 0
    for text in ("Figure 0: descent. Models: gradient-descent, baseconv", "20 × 16", "seeds: 2",
                 "16 prompts, float32, on cpu"):  # fmt: skip
        assert text in outcome.out
    assert "on cpu" in page.read_text("utf-8")


def test_missing_runs_are_counted_and_no_record_at_all_is_an_error(cli, study, tmp_path):
    path = study / "small.toml"
    nothing = cli("leaderboard", "figure", path, "--records", tmp_path)
    assert nothing.code == 2
    assert "iclbench sweep" in nothing.err
    large = cli("leaderboard", "figure", path, "--records", study / "records", "--size", "large")
    assert large.code == 2
    assert "--size large" in large.err
    first = sweep({"defaults": {"task": "least-squares", "eval_prompts": 16},
                   "grid": [{"model": "gradient-descent", "model_args": {"steps": 1}}]},
                  out=tmp_path / "some")  # fmt: skip
    assert "1 run of the study has no record" in caption("", first.records, 1)
    some = cli("leaderboard", "figure", path, "--records", tmp_path / "some", "--file",
               tmp_path / "some.html")  # fmt: skip
    assert "2 runs of the study have no record" in some.out


def test_a_damaged_record_is_named_as_in_a_figure_of_records(cli, study, tmp_path):
    records = tmp_path / "records"
    shutil.copytree(study / "records", records)
    path = next(records.glob("*/gradient-descent-*.json"))
    path.write_bytes(path.read_bytes()[:300])
    page = ("--file", tmp_path / "page.html")
    drawn = cli("leaderboard", "figure", study / "small.toml", "--records", records, *page)
    assert (drawn.code, "1 run of the study has no record" in drawn.out) == (2, True)
    assert drawn.err.startswith(f"iclbench: error: {path}")
    other = cli("leaderboard", "figure", records, "--x", "model", *page)
    assert (other.code, other.err) == (drawn.code, drawn.err)


def test_own_records_come_before_more_published_ones(cli, study, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(study / "records", tmp_path / "leaderboards" / "studies" / "small")
    (tmp_path / "small.toml").write_text(f'out = "own"\n{SMALL}')
    published = cli("leaderboard", "figure", "small.toml", "--file", "a.html")
    assert f"small: the records of {Path('leaderboards', 'studies', 'small')}" in published.err
    one = {"model": "gradient-descent", "model_args": {"steps": 1}}
    sweep({"defaults": {"task": "least-squares", "eval_prompts": 16}, "grid": [one]}, out="own")
    own = cli("leaderboard", "figure", "small.toml", "--file", "b.html")
    assert "small: the records of own" in own.err
    assert "2 runs of the study have no record" in own.out


DEPENDENT = """
[figure]
x = "eval_seed"

[defaults]
task = "least-squares"
recipe = "smoke"

[[grid]]
name = "first"
model = "baseconv"

[[grid]]
model = "baseconv"
weights = "@first"
eval_seed = [1, 2, 3]
"""


def test_runs_that_lack_their_weights_are_counted_one_by_one(cli, tmp_path):
    path = tmp_path / "dependent.toml"
    path.write_text(DEPENDENT)
    nothing = cli("leaderboard", "figure", path, "--records", tmp_path)
    assert (nothing.code, "none of its 4 runs has a record" in nothing.err) == (2, True)


def test_an_image_without_kaleido_is_an_error_of_one_line(cli, study, tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "kaleido":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    outcome = cli("leaderboard", "figure", study / "small.toml", "--records", study / "records",
                "--format", "svg", "--file", tmp_path / "a.svg")  # fmt: skip
    assert outcome.code == 2
    assert "iclbench[figures]" in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_format_is_refused(cli, study, tmp_path):
    outcome = cli("leaderboard", "figure", study / "small.toml", "--records", study / "records",
                "--format", "jpg")  # fmt: skip
    assert outcome.code == 2
    assert "'jpg'" in outcome.err


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("kind", "start"), [("svg", b"<svg"), ("pdf", b"%PDF"), ("png", b"\x89PNG")]
)
def test_images_are_written(cli, study, tmp_path, kind, start):
    pytest.importorskip("kaleido")
    if not find("chromium", "google-chrome"):
        pytest.skip("no Chromium was found (Debian: apt-get install chromium)")
    path = tmp_path / f"figure.{kind}"
    outcome = cli("leaderboard", "figure", study / "small.toml", "--records", study / "records",
                "--file", path)  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert path.read_bytes().startswith(start)


@pytest.mark.parametrize("mistake", [b"[figure\n", b'title = "\xe4"\n', b"a = " + b"[" * 9999])
def test_a_study_with_a_mistake_is_named_and_told(tmp_path, monkeypatch, mistake):
    (tmp_path / "sweeps").mkdir()
    path = tmp_path / "sweeps" / "mine.toml"
    path.write_bytes(b"# Figure 1.\n" + mistake)
    package = ModuleType("of_a_study")
    package.__path__ = [str(tmp_path)]
    monkeypatch.setitem(sys.modules, package.__name__, package)
    plugin = Plugin("p", "p", "1", package.__name__, 0.0)
    study = find_study("mine", SimpleNamespace(plugins=[plugin]))
    assert (study.name, study.caption) == ("p/mine", "Figure 1.")
    check = dict(checks_of_plugin(plugin))["sweeps"]
    for reads in (check, lambda: study_records(study, "quick", None)):
        with pytest.raises(UsageError, match=r"mine\.toml is n"):
            reads()
    path.write_text(SMALL)
    assert check() == "1 sweep file"


def test_a_study_may_start_with_a_byte_order_mark(tmp_path):
    (tmp_path / "study.toml").write_text(SMALL, "utf-8-sig")
    assert _has_figure(tmp_path / "study.toml")
    plain = tmp_path / "plain.toml"
    plain.write_text(SMALL)
    captions = {Study("x", tmp_path / name).caption for name in ("study.toml", "plain.toml")}
    assert len(captions) == 1
    assert captions != {""}
