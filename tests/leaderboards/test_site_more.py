"""The site's pages of their own kind: studies, matrices, analyses, samples, and a run's parts."""

from __future__ import annotations

import hashlib
import json
import re

import numpy as np
import pytest
from rich_records import ANALYSIS, FINDING, NOTES, make_rich

from iclbench import RecordStore, UsageError
from iclbench.leaderboards.findings import judgements
from iclbench.leaderboards.site import heat
from iclbench.leaderboards.site.build import make_site
from iclbench.leaderboards.site.prompts import Prompts, answers_at, values_at
from iclbench.leaderboards.site.run_parts import bibtex
from iclbench.leaderboards.site.study_figure import published_view
from iclbench.leaderboards.study_notes import read_notes
from iclbench.runs.load import load_task
from iclbench.runs.store import read_record, read_values


@pytest.fixture(scope="module")
def folder(leaderboards, tmp_path_factory):
    return make_rich(tmp_path_factory.mktemp("rich"), leaderboards)


@pytest.fixture(scope="module")
def site(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("site") / "out"
    problems: list[str] = []
    make_site(out, folder, problems.append)
    assert problems == []
    return out


def read(site, name):
    return (site / name).read_text("utf-8")


def number(text):
    return float(text.replace("−", "-"))


def trained(folder):
    records = [read_record(path) for path in RecordStore(folder / "records").paths()]
    return [record for record in records if record.spec.origin == "trained"]


def test_the_gallery_shows_the_paper_beside_ours_with_the_verdict(site, folder):
    page = read(site, "studies.html")
    (judged, waiting) = judgements(folder, print)
    for text in ("Does depth help?", "≈ 1e−7", "&gt; 0.0002", "Deeper models are more precise.",
                 'href="https://arxiv.org/abs/2503.12295"', "median squared error",
                 f">{judged.verdict}*<small", waiting.finding.claim):  # fmt: skip
        assert text in page
    assert waiting.verdict == "not run"


def test_a_study_has_a_page_with_its_criterion_its_commands_and_every_record(site, folder):
    page = read(site, "studies/least-squares-depth.html")
    for text in ("at least 100 times that of two", "after the run",
                 "iclbench sweep least-squares/depth --out results",
                 "have no record with the current arguments", "Models: baseconv."):  # fmt: skip
        assert text in page
    paths = RecordStore(folder / "studies" / "least-squares-depth").paths()
    for record in map(read_record, paths):
        assert f'href="least-squares-depth/{record.id}.html"' in page
        own = read(site, f"studies/least-squares-depth/{record.id}.html")
        assert "in the study" in own
        assert "Compare with" not in own
        file = site / "studies" / "least-squares-depth" / record.weights_file.name
        assert hashlib.sha256(file.read_bytes()).hexdigest() == record.weights_file.sha256


def test_a_study_whose_package_is_not_installed_has_a_page_without_a_figure(folder, tmp_path):
    (tmp_path / "records").symlink_to(folder / "records")
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "somebodys-study").symlink_to(folder / "studies/least-squares-depth")
    make_site(tmp_path / "out", tmp_path)
    page = read(tmp_path / "out", "studies/somebodys-study.html")
    assert "the package of this study is not installed" in page
    assert "somebodys-study" in read(tmp_path / "out", "studies.html")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("https://", "javascript:"), "link"),
        (('records = "least-squares-depth"', 'records = "../x"'), "plain name"),
        (('metric = "mean squared error"', ""), "numbers without a metric"),
        (("1e-7", "-1"), "greater than 0"),
        (("[[study]]", "[[study"), "studies.toml"),
    ],
)
def test_bad_notes_are_refused_on_one_line(tmp_path, change, reason):
    (tmp_path / "studies.toml").write_text(NOTES.replace(*change), "utf-8")
    with pytest.raises(UsageError, match=reason):
        read_notes(tmp_path)


def test_pages_of_every_kind_are_listed_where_records_have_what_they_show(site, leaderboards,
                                                                          tmp_path):  # fmt: skip
    page = read(site, "matrices.html")
    for name in ("samples/least-squares", "shifts/least-squares", "states/least-squares",
                 "analyses/attention-maps"):  # fmt: skip
        assert f'href="{name}.html"' in page
        assert (site / f"{name}.html").is_file()
    make_site(tmp_path, leaderboards)
    plain = read(tmp_path, "matrices.html")
    assert "samples/least-squares.html" in plain
    assert not any(word in plain for word in ("shifts/", "analyses/", "studies.html"))


def test_a_shift_s_line_has_each_model_s_digits_and_why_one_does_not_apply(site, folder):
    page = read(site, "shifts/least-squares.html")
    for record in trained(folder):
        digits = f"{record.metrics['squared_error'].digits.mean:.2f}".replace("-", "−")
        assert re.search(rf">{digits} <small>−?\d\.\d\d … −?\d\.\d\d</small></td>", page)
    assert "<small>open budget, 2 seeds</small>" in page
    assert "it has &lt;b&gt;positions&lt;/b&gt;" in page
    assert ">n/a</td>" in page
    # What a shift changes, and the unit, stand beside the name, which a phone keeps in sight.
    assert "<small>noise with standard deviation 1 on the values<br>" in page
    assert re.search(r'<th scope="row">as in training<small>digits, floor \d\.\d\d</small>', page)


def test_the_state_s_page_has_the_bytes_of_a_layer(site, folder):
    page = read(site, "states/least-squares.html")
    assert {f"{r.state_bytes:,.0f}" for r in trained(folder)} == {"256", "512"}
    assert all(f"<td>{size}</td>" in page for size in (256, 512))
    # A point for every row, joined by no line; a narrow drawing has them again.
    wide = page.partition('<svg class="narrow"')[0]
    paths = re.findall(r'<path class="line c\d[^"]*" d="([^"]*)"><title>', wide)
    assert len(paths) == 2
    assert not any("L" in path for path in paths)


def test_an_analysis_is_drawn_and_what_is_malformed_is_left_out(site):
    page = read(site, "analyses/attention-maps.html")
    assert page.count('class="heatmap"') == 2 * 2  # two sound maps of two records
    assert "Error of &lt;each&gt; layer" in page
    assert "no plot" not in page
    assert "uneven" not in page
    assert "&lt;i&gt;7&lt;/i" in page
    assert "<i>7" not in page
    assert "layers 1 error" in page


def test_endings_are_shown_escaped_on_the_run_s_page_and_side_by_side(site, folder):
    for record in trained(folder):
        assert "a &lt;b&gt;fox&lt;/b&gt;." in read(site, f"runs/{record.id}.html")
    page = read(site, "samples/least-squares.html")
    assert page.count("a &lt;b&gt;fox&lt;/b&gt;.") == 3
    assert page.count("There was once") == 1
    assert page.count("words: 2") == 3
    assert "beside its name are its track and its training steps × prompts per step." in page
    assert page.count("</a> <small>open budget, ") == 2 * 2  # of two beginnings


def test_a_run_s_page_has_its_files_with_sizes_and_digests_and_its_citation(site, folder):
    for record in trained(folder):
        page = read(site, f"runs/{record.id}.html")
        for reference in record.files():
            assert reference.sha256 in page
        path = RecordStore(folder / "records").path(record.spec)
        assert hashlib.sha256(path.read_bytes()).hexdigest() in page
        assert f"@misc{{iclbench-{record.id}," in page
        assert "Proved" in page
        assert record.training.curve
        assert "Training loss" in page


def test_a_citation_escapes_what_tex_would_read(folder):
    record = trained(folder)[0]
    spec = record.spec.model_copy(update={"model": "my_model & more"})
    entry = bibtex(record.model_copy(update={"spec": spec}))
    assert r"my\_model \& more on least-squares" in entry
    assert entry.count("{") - entry.count(r"\{") == entry.count("}") - entry.count(r"\}")


def test_sample_prompts_are_those_of_the_evaluation_set_with_their_errors(folder):
    record = trained(folder)[0]
    drawn = Prompts().of(record)
    task = load_task(record.spec.task, **record.main.task_args)
    import torch

    (batch,) = task.evaluation_batches(record.main.prompts, record.main.seed, torch.float32)
    for i, prompt in enumerate(drawn):
        examples = prompt["tables"][0]
        assert examples["titles"] == ["x₁", "x₂", "y"]
        x = [[number(cell) for cell in row] for row in examples["rows"]]
        expected = torch.cat([batch.prompt.x[i], batch.prompt.y[i]], dim=1)
        np.testing.assert_allclose(x, expected, rtol=1e-3)
        (target,) = prompt["numbers"]
        assert prompt["target"]["rows"] == [(target,)]
        assert number(target) == pytest.approx(float(batch.target[i, 0, 0]), rel=1e-3)
    path = RecordStore(folder / "records").path(record.spec)
    values = read_values(path, record.main.values)
    (line,) = [one for one in values_at(record, values) if one["metric"] == "squared_error"]
    shown = [[number(v) for v in row] for row in line["prompts"]]
    np.testing.assert_allclose(shown, values["squared_error"][:, :3].T, rtol=0.01)


def test_answers_stand_beside_the_targets_on_both_pages(site, folder):
    samples = read(site, "samples/least-squares.html")
    assert "answer, by seed" in samples
    for record in trained(folder):
        page = read(site, f"runs/{record.id}.html")
        assert "and the model's answers" in page
        assert page.count("<h4>Target and answers</h4>") == 3
        for i in range(3):
            answers = [text for (text,) in answers_at(record, i, 0)]
            assert [number(text) for text in answers] == pytest.approx(
                [by_prompt[i][0] for by_prompt in record.main.answers], rel=1e-3
            )
            for text in answers:
                assert f"<td>{text}</td>" in page
                assert f'<td class="answer">{text}</td>' in samples


def test_an_answer_is_the_likeliest_classes_or_all_its_numbers(folder):
    record = trained(folder)[0]

    def shown(numbers, classes):
        answers = (((*numbers,),) * 3,)
        main = record.main.model_copy(update={"answers": answers})
        changed = record.model_copy(update={"evaluations": {"main": main}})
        return answers_at(changed, 0, classes)

    assert shown([-3.0, -0.1, -2.0], 1) == [["1"]]
    assert shown([-3.0, None, -2.0], 1) == [["not finite"]]
    # Two queries of three classes.
    assert shown([0.0, 1.0, 0.0, 9.0, 1.0, 0.0], 2) == [["1", "0"]]
    assert shown([0.5, None], 0) == [["0.5", "not finite"]]
    assert shown([-0.5, 1e-7], 0) == [["−0.5", "1e−07"]]
    assert shown(map(float, range(9)), 0) == [list("012345678")]
    older = record.main.model_copy(update={"answers": None})
    assert answers_at(record.model_copy(update={"evaluations": {"main": older}}), 0, 0) == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"digest": "0" * 64}, "draws other prompts"),
        ({"task_args": {"dim": 2, "examples": 4, "nonsense": 1}}, "nonsense"),
        ({"task_args": {"dim": 10**8, "examples": 4}}, "too large|at most|need"),
    ],
)
def test_prompts_that_are_not_the_record_s_are_not_shown(folder, change, reason):
    record = trained(folder)[0]
    main = record.main.model_copy(update=change)
    reply = Prompts().of(record.model_copy(update={"evaluations": {"main": main}}))
    assert isinstance(reply, str)
    assert re.search(reason, reply), reply


def test_a_heat_map_s_shades_follow_its_values():
    maps = heat.draw_maps([{"name": "m", "values": [[-1.0, 0.0], [0.5, None]]}])
    shades = re.findall(r'class="h(-?\d)" d="([^"]+)"', maps[0]["svg"])
    assert dict(shades) == {"-8": "M0 0h1v1h-1z", "0": "M1 0h1v1h-1z", "4": "M0 1h1v1h-1z"}
    assert (maps[0]["low"], maps[0]["high"], maps[0]["signed"]) == ("-1", "1", True)
    assert maps[0]["numbers"] == [["-1", "0"], ["0.5", ""]]


def test_a_plane_is_drawn_upwards_and_equal_neighbors_as_one():
    plane = {"name": "p", "values": [[0.0, 0.0], [1.0, 1.0]], "x": [0, 1], "y": [0, 1]}
    (view,) = heat.draw_maps([plane])
    assert dict(re.findall(r'class="h(-?\d)" d="([^"]+)"', view["svg"])) == {
        "8": "M0 0h2v1h-2z", "0": "M0 1h2v1h-2z"}  # fmt: skip


def test_a_single_number_of_a_paper_is_text_and_several_are_a_plot(folder):
    notes = read_notes(folder)["least-squares-depth"]
    assert published_view(notes)["kind"] == "dots"
    one = notes.model_copy(update={"published": notes.published[:1]})
    assert published_view(one)["text"] == "≈ 1e−7"
    assert published_view(notes.model_copy(update={"published": ()})) is None


def test_the_notes_and_findings_of_the_repository_are_of_every_study():
    from pathlib import Path

    published = Path(__file__).parents[2] / "leaderboards"
    names = {path.name for path in (published / "studies").iterdir()}
    assert set(read_notes(published)) == names
    judged = judgements(published, print)
    assert {o.finding.records for o in judged if o.verdict != "not run"} == names


def test_the_texts_of_this_test_are_valid(tmp_path):
    (tmp_path / "findings.toml").write_text(FINDING, "utf-8")
    assert [o.verdict for o in judgements(tmp_path, print)] == ["not run", "not run"]
    assert json.loads(json.dumps(ANALYSIS)) == ANALYSIS


def test_the_search_finds_studies(site):
    assert "studies/least-squares-depth.html" in read(site, "data/search.js")
