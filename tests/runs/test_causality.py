"""No model reads the answers: what is scored must not change with what comes after it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from iclbench import SequenceModel, Signature, UsageError, load_task
from iclbench.kit.tasks import check_task
from iclbench.runs.causality import reads_ahead, require_causal
from iclbench.runs.checks import ConformanceError
from iclbench_transformer.architecture import Transformer

STORIES = load_task("stories", length=12, beginning=4, endings=0)
PREFIXES = load_task("least-squares-prefixes", dim=2, examples=4)


class Recurrent(nn.Module):
    """A whole model of its own: it shows no states."""

    def __init__(self, signature: Signature):
        super().__init__()
        self.table = nn.Embedding(signature.vocabulary, 6)
        self.cell = nn.GRU(6, 6, batch_first=True)
        self.readout = nn.Linear(6, signature.output_width)

    def forward(self, prompt):
        return self.readout(self.cell(self.table(prompt.ids))[0])


class LooksAhead(Recurrent):
    def forward(self, prompt):
        states = self.cell(self.table(prompt.ids))[0]
        return self.readout(states + states.roll(-1, dims=1))


class CheatsAfterItsStates(SequenceModel):
    """Its states are causal, and its answers add the next position's."""

    def forward(self, prompt):
        states = self.hidden(*prompt.sequence())
        answers = self.readout(self.norm(states + states.roll(-1, dims=1)))
        return answers[:, self.readout_positions]


def cheating_after_its_states(signature):
    config = Transformer.Config(layers=1, width=8, causal=True)
    model = Transformer().build(signature, config)
    model.__class__, model.readout_positions = CheatsAfterItsStates, list(signature.readout)
    return model


def test_a_model_without_states_can_be_tested_on_stories():
    require_causal(Recurrent(STORIES.signature), STORIES)
    with pytest.raises(UsageError, match="would read the answers"):
        require_causal(LooksAhead(STORIES.signature), STORIES)


class Beginning(Recurrent):
    """Makes its first state in its forward pass."""

    def forward(self, prompt):
        x = self.table(prompt.ids)
        return self.readout(self.cell(x, torch.zeros(1, len(x), 6))[0])


class InFloat32(Beginning):
    def forward(self, prompt):
        if self.readout.weight.dtype != torch.float32:
            raise TypeError("this kernel computes in float32")
        return super().forward(prompt)


class LooksAheadInFloat32(InFloat32):
    def forward(self, prompt):
        answers = super().forward(prompt)
        return answers + answers.roll(-1, dims=1)


@pytest.mark.parametrize("kind", [Beginning, InFloat32])
def test_a_model_may_make_tensors_of_its_own_and_have_one_dtype(kind):
    assert reads_ahead(kind(STORIES.signature), STORIES) is None


def test_a_look_ahead_of_a_model_of_one_dtype_is_caught():
    with pytest.raises(UsageError, match="would read the answers"):
        require_causal(LooksAheadInFloat32(STORIES.signature), STORIES)


@pytest.mark.parametrize("task", [STORIES, PREFIXES], ids=["stories", "prefixes"])
def test_a_look_ahead_after_the_states_is_caught(task):
    assert reads_ahead(cheating_after_its_states(task.signature), task) is not None


def test_the_mask_changes_every_later_id_and_no_earlier_one():
    ids = torch.randint(STORIES.corpus.vocabulary.size, (3, 12))
    masked = STORIES.mask_after(STORIES.signature.prompt(ids), 4).ids
    assert torch.equal(masked[:, :5], ids[:, :5])
    assert (masked[:, 5:] != ids[:, 5:]).all()


def test_a_causal_task_must_mask(monkeypatch):
    monkeypatch.setattr(type(PREFIXES), "mask_after", lambda self, prompt, position: None)
    with pytest.raises(ConformanceError, match="must define mask_after"):
        check_task(PREFIXES)
