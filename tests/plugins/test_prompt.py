"""The grading prompt, and the parsing of answers."""

from __future__ import annotations

import pytest

from iclbench_graders import prompt


@pytest.mark.parametrize(
    "content", ['{"grammar": 7.5, "consistency": 1, "plot": 10, "creativity": 2, "why": "…"}']
)
def test_fractional_grades_in_range_are_accepted(content):
    assert prompt.read_grades(content)["grammar"] == 7.5


def test_prompt_is_the_published_one():
    """A change of the prompt changes this, and makes all grades others: say so in the changelog."""
    assert prompt.DIGEST[:16] == "f5a5d35360e080cf"
