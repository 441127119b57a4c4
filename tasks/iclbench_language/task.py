"""The task `regbench`: the next symbol of words of a random automaton (Akyürek et al. 2024)."""

from __future__ import annotations

import math
from functools import cached_property

import torch
from torch import Tensor

from iclbench import (
    UNASKED,
    Batch,
    Draws,
    EvaluationContext,
    FactoredLogits,
    FloorKind,
    Primary,
    Random,
    Shift,
    Signature,
    Task,
    Text,
    TrainingRandom,
    likeliest,
    map_tensors,
    to_device,
    token_loss,
    torch_generator,
)

from .automata import Tables, evaluation_pool, tables_of, training_pool
from .config import RegBenchConfig
from .recipes import PAPER, QUICK, SMOKE
from .shifts import language_shifts
from .words import SPECIAL, Words, walks


class RegBench(Task[RegBenchConfig]):
    """Predict the next symbol of words that a random automaton writes, from the words before.

    A prompt has 10–19 words of 1–49 symbols of one automaton, joined by separators. The next symbol
    is uniform over the edges of the automaton's state. Automata of evaluation have other languages
    than those of training; under the shifts `more-states` and `more-edges` a few small ones may be
    of training. Every position is asked that is followed by a symbol; where the next id is a
    separator or padding, the target is −1.

    The ids are the symbols, then the separator, then the padding after the last word.
    """

    name = "regbench"
    version = 1
    Config = RegBenchConfig
    recipes = {"paper": PAPER, "quick": QUICK, "smoke": SMOKE}
    training_only = frozenset({"automata", "fixed"})
    # What the automata are changes neither a shape nor the loss.
    replica_args = frozenset({"automata", "min_states", "max_states", "max_edges", "fixed"})
    errors = {}
    fractions = frozenset({"accuracy", "total_variation"})
    floor_name = "true automaton"
    floor_summary = (
        "The true automaton's distribution, which no prompt shows in full: accuracy 1, distance 0, "
        "and the entropy of the next symbol."
    )

    def __init__(self, config: RegBenchConfig) -> None:
        super().__init__(config)
        self._tables: dict[tuple[bool, torch.device], Tables] = {}

    @property
    def primary(self) -> Primary:
        """The share of positions whose most probable symbol the automaton allows."""
        return Primary("accuracy", better="higher")

    @property
    def floor_kind(self) -> FloorKind:
        """`bound`: see `floor_summary`."""
        return "bound"

    @property
    def signature(self) -> Signature:
        """T ids, read at every position."""
        c = self.config
        return Signature(
            prompt=Words,
            target="token",
            length=c.inputs,
            input_width=0,
            output_width=c.symbols + SPECIAL,
            readout=tuple(range(c.inputs)),
            causal=True,
            vocabulary=c.symbols + SPECIAL,
            shapes={"ids": (c.inputs,)},
        )

    @property
    def shifts(self) -> dict[str, Shift]:
        """Larger automata, more edges, and other lengths of words."""
        return language_shifts(self.config)

    def tables(self, training: bool, device: torch.device) -> Tables:
        """The pool of training or of evaluation automata.

        Raises UsageError if too few automata of the configured sizes have different languages.
        """
        key = (training, device)
        if key not in self._tables:
            c = self.config
            seed, count = c.task_seed, c.evaluation_automata
            pool = (
                training_pool(seed, c.range, c.automata, count)
                if training
                else evaluation_pool(seed, c.range, count)
            )
            self._tables[key] = tables_of(pool).to(device)
        return self._tables[key]

    def draw(self, random: Random) -> Draws:
        """automaton, words and training (B,), lengths (B, words), edges (B, T + 1); integers."""
        c = self.config
        pool = c.automata if random.training else c.evaluation_automata
        automaton = random.integers("automaton", pool)
        return {
            "automaton": automaton,
            "words": c.min_words + random.integers("words", c.max_words - c.min_words + 1),
            "lengths": 1 + random.integers("lengths", c.word_length, c.max_words),
            # Below a multiple of every degree, so that an edge is exactly uniform.
            "edges": random.integers("edges", math.lcm(*range(1, c.max_edges + 1)), c.inputs + 1),
            "training": torch.full_like(automaton, random.training, dtype=torch.bool),
        }

    def arrange(self, draws: Draws) -> Batch:
        """The first T ids, and those that follow; truth has the automaton and its states."""
        c, automaton = self.config, draws["automaton"]
        tables = self.tables(bool(draws["training"][0]), automaton.device)
        ranks = torch.arange(c.max_words, device=automaton.device)
        lengths = draws["lengths"] * (ranks < draws["words"].unsqueeze(1))
        ids, states = walks(tables, automaton, lengths, draws["edges"], separator=c.symbols)
        target = ids[:, 1:].masked_fill(ids[:, 1:] >= c.symbols, UNASKED)
        return Batch(Words(ids[:, :-1]), target, {"automaton": automaton, "states": states[:, 1:]})

    def training_prompts(self, random: TrainingRandom, dtype: torch.dtype) -> Batch:
        """Fresh words, or the fixed prompts in shuffled passes, of which every call starts one."""
        if not self.config.fixed:
            return super().training_prompts(random, dtype)
        chosen = random.passes(self.config.automata)
        fixed = self._fixed
        prompt = to_device(fixed.prompt, chosen.device)
        return Batch(map_tensors(lambda t: t[chosen], prompt), fixed.target.to(chosen)[chosen])

    @cached_property
    def _fixed(self) -> Batch:
        """A prompt of each training automaton, made on the CPU from `task_seed`."""
        c = self.config
        generator = torch_generator("cpu", "regbench prompts", c.task_seed)
        draws = self.draw(TrainingRandom([generator], [c.automata], torch.float64))
        return self.arrange({**draws, "automaton": torch.arange(c.automata)})

    def loss(self, prediction: Tensor | FactoredLogits, target: Tensor) -> Tensor:
        """The mean cross-entropy of the symbols that are asked for, (B,)."""
        asked = target != UNASKED
        return _mean(token_loss(prediction, target.clamp(min=0)), asked)

    def metrics(self, prediction: Tensor, batch: Batch) -> dict[str, Tensor]:
        """accuracy, total_variation and nll, means over the asked positions of a prompt, (B,).

        The likeliest symbols share a tie: a guess is legal as often as one of them is.
        """
        asked, truth = batch.target != UNASKED, self.distribution(batch)
        legal = (likeliest(prediction) * (truth > 0)).sum(dim=2)
        distance = 0.5 * (prediction.softmax(dim=2) - truth).abs().sum(dim=2)
        return {
            "accuracy": _mean(legal, asked),
            "total_variation": _mean(distance, asked),
            "nll": self.loss(prediction, batch.target),
        }

    def distribution(self, batch: Batch) -> Tensor:
        """The true distribution of the next symbol at each position, (B, T, V), float64."""
        tables = self.tables(False, batch.target.device)
        automaton, states = batch.truth["automaton"].unsqueeze(1), batch.truth["states"]
        degree = tables.degree[automaton, states].unsqueeze(2)
        ranks = torch.arange(tables.symbol.shape[2], device=degree.device)
        shares = (ranks < degree) / degree.double()
        size = (*states.shape, self.signature.output_width)
        truth = torch.zeros(size, dtype=torch.float64, device=degree.device)
        # Unused entries of the table add 0 to symbol 0.
        return truth.scatter_add_(2, tables.symbol[automaton, states], shares)

    def floor(self, batch: Batch, context: EvaluationContext) -> dict[str, Tensor]:
        """The metrics of the true distribution: 1, 0, and the mean logarithm of the degree."""
        asked = batch.target != UNASKED
        degree = (self.distribution(batch) > 0).sum(dim=2).double()
        ones = torch.ones(len(asked), dtype=torch.float64)
        return {
            "accuracy": ones,
            "total_variation": torch.zeros_like(ones),
            "nll": _mean(degree.log(), asked),
        }

    def chance(self, batch: Batch) -> dict[str, Tensor]:
        """The expected accuracy of a random symbol, and what the uniform distribution has."""
        asked, symbols = batch.target != UNASKED, self.config.symbols
        share = (self.distribution(batch) > 0).sum(dim=2).double() / symbols
        accuracy = _mean(share, asked)
        return {
            "accuracy": accuracy,
            # ½(k(1/k − 1/V) + (V − k)/V) for k of V symbols.
            "total_variation": 1.0 - accuracy,
            "nll": torch.full_like(accuracy, math.log(symbols)),
        }

    def mask_after(self, prompt: Words, position: int) -> Words:
        """Replaces every id after that read-out by another one."""
        return Words(*Text(prompt.ids).masked_after(position, self.signature.vocabulary))


def _mean(values: Tensor, asked: Tensor) -> Tensor:
    """The mean of values (B, T) over the asked positions, (B,)."""
    # `where`, not a product: what is not asked may be infinite.
    return torch.where(asked, values, 0.0).sum(dim=1) / asked.sum(dim=1)
