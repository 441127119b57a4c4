"""What models wrote, on the site: endings, and a language model's questions and answers."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from asked_models import parrot
from browser import missing, open_browser, save_screenshot
from rich_records import make_rich

from iclbench import RecordStore, run
from iclbench.leaderboards.site.answers import _question, compared, endings, first_answers
from iclbench.leaderboards.site.build import make_site
from iclbench.leaderboards.site.prompts import with_answers
from iclbench.runs.objects import Objects
from iclbench.runs.store import read_record


@pytest.mark.parametrize("origins", [["trained", "solved"], ["solved", "solved"]])
def test_endings_stand_side_by_side_where_a_trained_model_wrote_some(
    leaderboards, tmp_path, origins
):
    folder = make_rich(tmp_path, leaderboards) / "records"
    records = [read_record(path) for path in RecordStore(folder).paths()]
    trained = [record for record in records if record.spec.origin == "trained"]
    rows = [
        SimpleNamespace(record=record, is_trained=origin == "trained")
        for record, origin in zip(trained, origins, strict=True)
    ]
    found = compared(rows, Objects(folder))
    assert [len(view["endings"]) for view in found] == ([2, 2] if "trained" in origins else [])


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({"ending": "\ud800 \u202e \x1b[1m"}, "? ? ?[1m"),
        ({"scores": {"words": 10**400}}, None),
    ],
)
def test_an_odd_line_of_endings_stops_no_page(leaderboards, tmp_path, change, shown):
    folder = make_rich(tmp_path, leaderboards) / "records"
    objects = Objects(folder)
    records = [read_record(path) for path in RecordStore(folder).paths()]
    record = next(record for record in records if record.grader)
    first, *others = objects.read(record.grader.answers).splitlines()
    lines = [json.dumps(json.loads(first) | change).encode(), *others]
    answers = objects.write(b"\n".join(lines), "jsonl")
    grader = record.grader.model_copy(update={"answers": answers})
    changed = record.model_copy(update={"grader": grader})
    before, after = endings(record, objects), endings(changed, objects)
    assert [view["ending"] for view in after] == (
        [view["ending"] for view in before[1:]] if shown is None
        else [shown, *(view["ending"] for view in before[1:])]
    )  # fmt: skip


@pytest.fixture
def asked(provide, tmp_path):
    """Records of a language model that writes what a page must not show as it is, and of chance."""
    answers = ["0.5 <b>bold</b>", "\u202e0.25", "I\n0.1", *["1"] * 17]
    shouting = parrot(ask=lambda self, questions, config, device: answers[: len(questions)])
    provide("model", "parrot", shouting)
    spec = {"task": "least-squares", "task_args": {"dim": 2, "examples": 3}, "eval_prompts": 20}
    for model in ("parrot", "zero"):
        run(model=model, **spec, device="cpu", out=tmp_path / "boards" / "records")
    return tmp_path / "boards"


def test_questions_come_with_their_answers_and_nothing_invisible(asked):
    objects = Objects(asked / "records")
    by_model = {r.spec.model: r for r in map(read_record, RecordStore(asked / "records").paths())}
    assert first_answers(by_model["zero"], objects) is None
    view = first_answers(by_model["parrot"], objects)
    assert (view["name"], view["count"], len(view["pairs"])) == ("a parrot", "20", 12)
    assert [pair["answer"] for pair in view["pairs"][:3]] == [
        "0.5 <b>bold</b>", "?0.25", "I\n0.1",
    ]  # fmt: skip
    first = view["pairs"][0]
    assert first["earlier_lines"] == first["earlier"].count("\n") + 1 == 2
    assert first["last"].splitlines()[0].count("→") == 1
    assert first["last"].endswith("] →")


@pytest.mark.parametrize(
    ("question", "earlier", "last"),
    [
        ("a → 1\nb → 2\nc →", "a → 1", "b → 2\nc →"),
        ("In: a\nOut: 1\n\nIn: b\nOut: 2\n\nIn: c\nOut:", "In: a\nOut: 1",
         "In: b\nOut: 2\n\nIn: c\nOut:"),
        ("What is it?", "", "What is it?"),
    ],
)  # fmt: skip
def test_a_question_s_last_example_and_query_are_apart(question, earlier, last):
    view = _question(question)
    assert (view["earlier"], view["last"]) == (earlier, last)


def test_a_long_question_keeps_its_query():
    view = _question("\n".join([*(f"{i} → {i}" for i in range(1000)), "7 →"]))
    assert view["last"] == "999 → 999\n7 →"
    assert view["earlier"].endswith("…")
    assert view["earlier_lines"] == 999


def test_pages_show_what_a_language_model_was_asked(asked, tmp_path):
    problems: list[str] = []
    make_site(tmp_path / "site", asked, problems.append)
    assert problems == []
    (record,) = (r for r in map(read_record, RecordStore(asked / "records").paths())
                 if r.spec.model == "parrot")  # fmt: skip
    page = (tmp_path / "site" / "runs" / f"{record.id}.html").read_text("utf-8")
    assert "a parrot, the first 12 of 20 questions" in page
    assert "<mark>0.5 &lt;b&gt;bold&lt;/b&gt;</mark>" in page
    assert "<dt>parameters</dt>" not in page
    samples = (tmp_path / "site" / "samples" / "least-squares.html").read_text("utf-8")
    assert samples.count("was asked</h4>") == 3
    assert "bold&lt;/b&gt;</mark>" in samples
    index = json.loads((tmp_path / "site" / "index.json").read_text("utf-8"))
    assert "asked" in json.dumps(index)


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=str(missing()))
@pytest.mark.parametrize(("width", "dark"), [(1400, False), (390, True)])
def test_questions_fit_wide_and_narrow_pages(asked, tmp_path, width, dark):
    site = tmp_path / "site"
    make_site(site, asked)
    (run_page,) = (p for p in (site / "runs").glob("*.html") if "a parrot" in p.read_text("utf-8"))
    with open_browser(width, 900, dark) as browser:
        for name, page in (
            ("asked", run_page),
            ("asked-samples", site / "samples/least-squares.html"),
        ):
            browser.get(page.as_uri())
            assert browser.execute_script("return document.documentElement.scrollWidth") <= width
            block = browser.find_element("css selector", "pre.asked mark")
            assert "0.5 <b>bold</b>" in block.text
            save_screenshot(browser, f"{name}-{width}-{'dark' if dark else 'light'}")
        assert browser.get_log("browser") == []


def test_a_record_with_damaged_answers_is_named_and_stops_nothing(asked, tmp_path):
    store = RecordStore(asked / "records")
    (path,) = (path for path in store.paths() if "parrot" in path.name)
    empty = Objects(asked / "records").write(b"", "jsonl")
    store.write(read_record(path).model_copy(update={"answers": empty}).sealed())
    problems: list[str] = []
    make_site(tmp_path / "site", asked, problems.append)
    (problem,) = problems
    assert path.name in problem
    assert "a question and an answer each" in problem
    assert (tmp_path / "site" / "tasks" / "least-squares.html").is_file()


def test_prompts_that_ask_the_same_have_no_answers_beside_them(provide, tmp_path):
    same = parrot(
        questions=lambda self, prompt, s, c: ["What is it?"] * len(prompt.x),
        ask=lambda *_: ["0.5"],
    )
    provide("model", "parrot", same)
    out = tmp_path / "records"
    run(model="parrot", task="least-squares", eval_prompts=4, device="cpu", out=out)
    make_site(tmp_path / "site", tmp_path, pytest.fail)
    samples = (tmp_path / "site" / "samples" / "least-squares.html").read_text("utf-8")
    assert "was asked</h4>" not in samples


def test_every_number_of_a_target_has_a_row_with_the_answers():
    table = with_answers(["1", "−2"], [["1.1", "−2"], ["0.9", "not finite"]], ["seed 0", "seed 1"])
    assert table["titles"] == ["number", "target", "seed 0", "seed 1"]
    assert table["rows"] == [("1", "1", "1.1", "0.9"), ("2", "−2", "−2", "not finite")]
    single = with_answers(["1"], [["1.1"]], [""])
    assert (single["titles"], single["rows"]) == (["target", "answer"], [("1", "1.1")])
