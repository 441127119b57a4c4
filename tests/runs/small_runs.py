"""Runs that take less than a second, and a model with constructions."""

from __future__ import annotations

import torch
from torch import nn

from iclbench import (
    Config,
    Construction,
    Metric,
    RecordStore,
    SequenceArchitecture,
    SequenceConfig,
)
from iclbench.training.checkpoints import weights_bytes

TINY = {
    "task": "least-squares",
    "task_args": {"dim": 2, "examples": 4},
    "recipe": "smoke",
    "seeds": 2,
    "eval_prompts": 64,
}


class Shift(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width))

    def forward(self, x):
        return x * self.weight


class Zeroed(Construction):
    summary = "predicts a constant"

    class Config(Config):
        value: float = 0.0

    def build(self, signature, args, task):
        state = {
            "readout.weight": torch.zeros(signature.output_width, 4).double(),
            "readout.bias": torch.full((signature.output_width,), args.value).double(),
        }
        return {"layers": 1, "width": 4}, state


class Complete(Zeroed):
    def build(self, signature, args, task):
        config, state = super().build(signature, args, task)
        module = Fake().build(signature, SequenceConfig(**config)).double()
        return config, {**{n: p.detach() for n, p in module.named_parameters()}, **state}


class Fake(SequenceArchitecture):
    name = "fake"
    constructions = {"partial": Zeroed(), "complete": Complete()}

    def mixer(self, width, length, causal, config):
        return Shift(width)


class Doubled(Metric):
    name = "doubled"

    def supports(self, task):
        return None if task.signature.target == "query" else "it needs a query"

    def compute(self, model, task, batch, context):
        return {"doubled": 2 * task.evaluate(model, batch, context)["squared_error"]}


def save_weights(path, *args):
    path.write_bytes(weights_bytes(*args))


def weights_of(folder, record):
    return RecordStore(folder).objects.path(record.weights_file)
