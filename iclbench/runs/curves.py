"""Validation of a training: the ranked number of its models on prompts that no board uses."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from ..api.costs import Operations, ValidationCurve
from ..api.digits import digits
from ..api.evaluation import EvaluationContext
from ..api.prompts import Batch
from ..api.random import derive_seed, torch_generator
from ..api.recipe import Recipe
from ..api.statistics import finite
from ..precision import DTYPES
from ..training.validation import SHARE, Validation, points_of
from .evaluate import evaluate
from .models import initial_module
from .operations import PASSES
from .plan import Plan

#: Limits of the number of validation prompts.
FEWEST, MOST = 64, 1024
#: Prompts of the evaluation that is timed before training.
PROBE = 16

QUANTILES = {"q05": 0.05, "median": 0.5, "q95": 0.95}
#: Significant digits of a score: a curve is read by eye.
SIGNIFICANT = 5


class Validator:
    """Scores the models of a plan on its validation prompts."""

    def __init__(self, plan: Plan, prompts: int, device: torch.device, batch_size: int) -> None:
        self.plan, self.prompts, self.device = plan, prompts, device
        self.batch_size = batch_size
        self.seed = validation_seed(plan.spec.eval_seed)
        self.batches = self._batches(prompts)

    def _batches(self, prompts: int) -> list[Batch]:
        dtype = DTYPES[self.plan.spec.dtype]
        return self.plan.task.evaluation_batches(prompts, self.seed, dtype)
