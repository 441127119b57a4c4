"""A mixer with a cache continues as it mixes a whole sequence: else texts are another model's."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from iclbench import SequenceArchitecture, check_architecture, load_task
from iclbench.runs.caches import differing_cache
from iclbench.runs.checks import ConformanceError

PREFIXES = load_task("least-squares-prefixes", dim=2, examples=4)
STORIES = load_task("stories", length=12, beginning=4, endings=0)


class Sums(nn.Module):
    """Sums of linear maps of all positions up to each."""

    extends = True

    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return self.linear(x).cumsum(dim=1)

    def extend(self, x, cache):
        sums = self.linear(x).cumsum(dim=1) + (0 if cache is None else cache)
        return sums, sums[:, -1:]


class Forgets(Sums):
    def extend(self, x, cache):
        return self.linear(x).cumsum(dim=1), None


class Vanishes(Sums):
    def extend(self, x, cache):
        sums, cache = super().extend(x, cache)
        return sums, cache * torch.nan


class Fails(Sums):
    def extend(self, x, cache):
        return super().extend(x, cache["sums"] if cache is not None else None)


class Cut(Sums):
    def extend(self, x, cache):
        sums, cache = super().extend(x, cache)
        return sums[:, -1:], cache


class CannotExtend(Forgets):
    extends = False


def architecture(kind):
    class Mixing(SequenceArchitecture):
        name = "mixing"

        def mixer(self, width, length, causal, config):
            return kind(width)

    return Mixing(), Mixing.Config(layers=1, width=8)


@pytest.mark.parametrize("task", [PREFIXES, STORIES], ids=lambda task: task.name)
@pytest.mark.parametrize("kind", [Sums, CannotExtend])
def test_a_cache_that_holds_what_later_positions_need_passes(kind, task):
    assert differing_cache(*_with(kind, task)) is None


def _with(kind, task):
    made, config = architecture(kind)
    return made, task, config


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Forgets, r"extend\(\) of Forgets differs from its forward pass at position 2: the cache"),
        (Vanishes, r"extend\(\) of Vanishes differs from its forward pass at position 2"),
        (Fails, r"extend\(\) of Fails fails at position 2"),
        (Cut, r"extend\(\) of Cut gives \(2, 1, 8\) at position 0, not \(2, 2, 8\)"),
    ],
)
def test_a_cache_of_another_model_is_refused(kind, reason):
    made, config = architecture(kind)
    with pytest.raises(ConformanceError, match=reason):
        check_architecture(made, PREFIXES, config)


def test_a_model_that_reads_ahead_needs_no_cache():
    made, config = architecture(Forgets)
    assert differing_cache(made, PREFIXES, config.model_copy(update={"causal": False})) is None


def test_a_decoder_of_its_own_is_compared_with_the_forward_pass(monkeypatch):
    from iclbench.nn.generation import SequenceDecoder

    advance = SequenceDecoder.advance
    monkeypatch.setattr(SequenceDecoder, "advance", lambda self, ids: 1.01 * advance(self, ids))
    with torch.no_grad():
        problem = differing_cache(*_with(Sums, STORIES))
    assert problem == "its decoder differs from its forward pass at position 1"
