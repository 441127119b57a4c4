"""A prompt on a task's page: squares for numbers, or the text of data that ship."""

from __future__ import annotations

from types import SimpleNamespace

from iclbench.leaderboards.site.example import example, first_example
from iclbench_least_squares.fixed import LeastSquares


def board(title: str, **task_args):
    return SimpleNamespace(
        title=title, dtype="float32", evaluation=SimpleNamespace(task_args=task_args)
    )


def test_numbers_are_drawn_with_their_answer():
    view = example("least-squares", {"dim": 2, "examples": 3}, "float32")
    assert [field.name for field in view["fields"]] == ["x", "y", "query", "answer"]
    assert view["text"] is None


def test_a_picture_of_a_part_says_so():
    view = example("least-squares", {"dim": 30, "examples": 40}, "float32")
    assert [field.size for field in view["fields"][:2]] == ["24×24 of 40×30", "24×1 of 40×1"]


def test_a_text_that_ships_is_shown_and_nothing_is_fetched_for_another():
    prompt, answer = example("stories", {"length": 32}, "float32")["text"]
    assert prompt.startswith("A certain father")
    assert answer
    assert example("stories", {"length": 32, "data": "/no/such/file.jsonl"}, "float32") is None


def test_the_first_board_whose_data_are_at_hand_gives_the_example():
    boards = [board("elsewhere", digest="0" * 16), board("here", dim=16)]
    view = first_example("imagenet", boards)
    assert view["title"] == "here"
    assert view["fields"][0].size.endswith("×16")
    assert first_example("imagenet", boards[:1]) is None


def test_a_task_that_fails_has_no_example(provide):
    class Failing(LeastSquares):
        name = "failing"

        def draw(self, random):
            raise ValueError("a mistake of the plugin's")

    provide("task", "failing", Failing)
    assert example("failing", {}, "float32") is None


def test_sizes_from_a_record_are_bounded_before_anything_is_drawn():
    assert example("least-squares", {"dim": 10**7, "examples": 10**7}, "float32") is None
