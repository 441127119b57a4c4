"""The sentence of a home panel says only what ranks, floor and chance support, on any board."""

from __future__ import annotations

from dataclasses import replace

import pytest

from iclbench.leaderboards.board import Board
from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.held_out import PENDING
from iclbench.leaderboards.ranking import Rank
from iclbench.leaderboards.site.panel_words import panel_sentence

NAMES = ("lsa", "elsa", "gru", "lstm", "mamba")


@pytest.fixture(scope="module")
def about():
    return Descriptions(print)


@pytest.fixture
def said(board, about):
    """The sentence of trained rows of these ranks and of what they say of chance."""
    trained = next(row for row in board.rows if row.is_trained)
    others = tuple(row for row in board.rows if not row.is_trained)

    def say(ranks, chance=(), floor=board.floor, scores=(), unranked=(), **changes):
        rows = []
        for i, rank in enumerate(ranks):
            spec = trained.record.spec.model_copy(update={"model": NAMES[i]})
            record = trained.record.model_copy(update={"spec": spec})
            facts = {"rank": rank, "unranked": "" if rank else "one seed", "score": 2.5 - 0.1 * i}
            if scores:
                facts["score"] = scores[i]
            if unranked and unranked[i]:
                facts["unranked"] = unranked[i]
            facts["chance"] = chance[i] if i < len(chance) else ""
            rows.append(replace(trained, record=record, **{**facts, **changes}))
        return panel_sentence(Board((*rows, *others), floor), "", about)

    return say


def test_one_that_is_better_than_all_others_leads(said):
    text = said([Rank(1, 1), Rank(2, 3), Rank(2, 3)])
    assert text.startswith("LSA is significantly better than all other models; LSA is ")
    assert text.endswith(" digits short of the attainable.")
    # A row without a rank was not compared.
    assert "all other ranked models" in said([Rank(1, 1), Rank(2, 2), None])


def test_a_model_that_diverged_is_not_forgotten(said):
    alone = said([Rank(1, 1)])
    assert alone.startswith("Only LSA was trained")
    text = said([Rank(1, 1), None], scores=(2.5, None))
    assert not text.startswith("Only")
    assert text.endswith("; 1 of 2 diverged.")
    assert said([None, None], scores=(None, None)) == "2 of 2 diverged."


def test_ties_are_named_or_counted(said):
    ranks = [Rank(1, 2), Rank(1, 3), Rank(2, 3)]
    assert said(ranks).startswith("No model is significantly better than LSA or ELSA;")
    assert said([Rank(1, 2), Rank(2, 3), Rank(2, 3)]).startswith(
        "No model is significantly better than LSA;"
    )
    many = [*[Rank(1, 4)] * 3, Rank(1, 5), Rank(4, 5)]
    assert said(many).startswith("The lead is open: 4 of 5 models have no significantly better one")
    assert said([Rank(1, 3)] * 3).startswith("No two models differ significantly; LSA is ")


def test_one_model_or_none_with_a_rank(said, board, about):
    assert said([None]).startswith("Only LSA was trained; LSA is ")
    assert said([None, None]).startswith("None of the 2 models has a rank;")
    # The other's row waits for held-out prompts.
    text = said([None, None], unranked=("", PENDING))
    assert text.startswith("Only LSA has a row that counts; LSA is ")
    assert panel_sentence(board, "10m", about) == ""


def test_models_at_chance_are_counted_and_lead_nothing(said):
    ranks = [Rank(1, 3)] * 3
    kinds = ("at chance", "perhaps at chance", "worse than chance")
    assert said(ranks, kinds) == "None of the 3 models is significantly better than chance."
    assert said([None], kinds) == ("LSA, the only model, is not significantly better than chance.")
    text = said([Rank(1, 1), Rank(2, 3), Rank(2, 3)], ("", "at chance"))
    assert text.endswith("; 1 of 3 is not significantly better than chance.")
    # The distance is that of the first model that learns.
    text = said(ranks, ("at chance", ""))
    assert "; ELSA is " in text
    assert text.endswith("; 1 of 3 is not significantly better than chance.")


def test_without_a_floor_the_reference_is_named(said, board):
    scores = [row.score for row in board.rows if row.origin == "solver"]
    text = said([Rank(1, 1), Rank(2, 2)], floor=None, floor_score=None)
    assert " of the way from chance to QR." in text
    assert max(scores) > 2.5
    # Nothing but the best row to compare with: nothing is said.
    bare = Board(tuple(row for row in board.rows if row.is_trained), None)
    rows = tuple(replace(row, chance="", floor_score=None) for row in bare.rows)
    assert "way from" not in panel_sentence(Board(rows, None), "", Descriptions(print))


def test_a_row_that_reaches_the_floor_says_so(said, board):
    text = said([None], score=board.floor.score, floor_score=board.floor.score)
    assert "LSA reaches the attainable." in text
