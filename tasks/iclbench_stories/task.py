"""The task `stories`: the next token, and the endings of held-out stories."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor

from iclbench import (
    Batch,
    Decodes,
    Draws,
    EvaluationContext,
    FactoredLogits,
    GradedTask,
    Primary,
    Random,
    Signature,
    TaskConfig,
    Text,
    UsageError,
    offers,
    philox,
    token_loss,
)

from .corpus import Corpus, open_corpus
from .endings import Endings
from .recipes import PAPER, QUICK

#: Logits that an evaluation holds at once, in elements.
AT_ONCE = 2**26


class StoriesConfig(TaskConfig):
    """The stories, their tokens, and what is generated."""

    data: str = Field(
        "generated",
        description="generated (from task_seed), tinystories, children-stories, another set of the "
        "hub (owner/name) or a path; several joined by +",
    )
    column: str = Field("text", description="where a data set's stories are")
    revision: str | None = Field(None, description="of the data on the hub; null: the newest")
    tokenizer: str = Field(
        "bpe", description="bpe (trained on the stories), gpt2, or a path of a tokenizer"
    )
    vocabulary: int = Field(512, ge=258, description="tokenizer=bpe: number of ids")
    length: int = Field(
        64, ge=2, description="T, ids that a model sees; stories are packed to T + 1"
    )
    held_out: float = Field(0.2, gt=0, lt=1, description="share of the stories that is held out")
    prefixes: int | None = Field(
        None, ge=1, description="prefixes of a window that are asked for, evenly spaced; null: all"
    )
    endings: int = Field(20, ge=0, description="held-out stories whose ending is generated")
    beginning: int = Field(24, ge=1, description="ids of a story that are given, of T")
    temperature: float = Field(0.0, ge=0, description="of generating; 0: the likeliest id")
    top_k: int | None = Field(None, ge=1, description="ids that are drawn from; null: all")
    top_p: float | None = Field(None, gt=0, le=1, description="their probability; null: all")
    cache: bool = Field(
        True, description="generate with a model's key-value cache, where it has one"
    )

    @model_validator(mode="after")
    def _fits(self) -> StoriesConfig:
        if self.beginning >= self.length:
            raise ValueError(f"a beginning of {self.beginning} ids leaves none of {self.length}")
        if self.prefixes is not None and self.prefixes > self.length:
            raise ValueError(f"a window of {self.length} ids has no {self.prefixes} prefixes")
        if self.temperature == 0 and (self.top_k is not None or self.top_p is not None):
            raise ValueError("top_k and top_p need a temperature above 0")
        return self


class Stories(GradedTask[StoriesConfig]):
    """Predict id t + 1 of packed stories from the ids up to t; then go on with held-out stories.

    A window is T ids with the next one each as target. `truth` holds a story for each of the first
    prompts: its beginning, END first, and its own ending up to T ids in all, filled with −1.
    """

    name = "stories"
    version = 1
    Config = StoriesConfig
    recipes = {"paper": PAPER, "quick": QUICK}
    floor_name = "true ending"

    @property
    def primary(self) -> Primary:
        """The held-out loss a token."""
        return Primary("nll", "lower", "mean", "linear")

    @property
    def corpus(self) -> Corpus:
        """The packed stories; made when they are first asked for."""
        c = self.config
        seed = c.task_seed if "generated" in c.data.split("+") else 0
        found = open_corpus(
            data=c.data,
            column=c.column,
            revision=c.revision,
            tokenizer=c.tokenizer,
            vocabulary=c.vocabulary,
            held_out=c.held_out,
            seed=seed,
        )
        for name, stream in (("training", found.train), ("held-out", found.held_out)):
            if len(stream) <= c.length:
                raise UsageError(
                    f"stories: the {name} stories of {c.data} are {len(stream):,} ids together, "
                    f"fewer than a window of {c.length + 1}; give more text or a smaller length"
                )
        return found

    @property
    def data_digest(self) -> str | None:
        """SHA-256 of the packed stories and their tokenizer."""
        return self.corpus.digest

    @property
    def signature(self) -> Signature:
        """T ids, read at every position, or at the last ones of the prefixes asked for."""
        c, size = self.config, self.corpus.vocabulary.size
        count = c.prefixes or c.length
        return Signature(
            prompt=Text,
            target="token",
            length=c.length,
            input_width=0,
            output_width=size,
            readout=tuple(c.length * (k + 1) // count - 1 for k in range(count)),
            causal=True,
            vocabulary=size,
        )

    def draw(self, random: Random) -> Draws:
        """ids (B, T + 1): windows of the training stories, drawn with replacement."""
        windows = (len(self.corpus.train) - 1) // self.config.length
        chosen = random.integers("window", windows)
        ids = self._windows(self.corpus.train, chosen.cpu().numpy())
        return {"ids": torch.from_numpy(ids).to(chosen.device)}

    def arrange(self, draws: Draws) -> Batch:
        """A window's first T ids, and the ids that follow the positions of the read-out."""
        ids = draws["ids"]
        positions = torch.tensor(self.signature.readout, device=ids.device)
        return Batch(Text(ids[:, :-1]), ids[:, 1:][:, positions])

    def evaluation_draws(self, n: int, seed: int) -> dict[str, np.ndarray]:
        """windows and stories: ids, of which there are fewer stories; see `truth`.

        Raises UsageError where there are not as many held out.
        """
        c, corpus = self.config, self.corpus
        total = (len(corpus.held_out) - 1) // c.length
        if n > total:
            raise UsageError(
                f"stories: {n} evaluation prompts are asked for, and the held-out stories are "
                f"{total} windows of {c.length} ids; --eval-prompts {total} is the most"
            )
        chosen = philox("stories windows", seed).permutation(total)[:n]
        return {
            "windows": self._windows(corpus.held_out, chosen),
            "stories": self._stories(min(n, c.endings), seed),
        }

    def evaluation_batches(self, n: int, seed: int, dtype: torch.dtype) -> list[Batch]:
        """One batch of n held-out windows; see the class for `truth`."""
        draws = self.evaluation_draws(n, seed)
        batch = self.arrange({"ids": torch.from_numpy(draws["windows"])})
        return [batch._replace(truth={"stories": torch.from_numpy(draws["stories"])})]

    def _windows(self, stream: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Ids (n, T + 1); neighbours share one id, so that each is asked for once."""
        places = chosen[:, None] * self.config.length + np.arange(self.config.length + 1)
        return np.asarray(stream[places]).astype(np.int64)

    def _stories(self, count: int, seed: int) -> np.ndarray:
        """T + 1 ids of held-out stories, END first, (count, T + 1), −1 after their end."""
        c, corpus = self.config, self.corpus
        edges = np.append(corpus.starts, len(corpus.held_out) - 1)
        # END and the beginning, and one id more at least.
        usable = np.flatnonzero(np.diff(edges) >= c.beginning + 1)
        if count > len(usable):
            raise UsageError(
                f"stories: {count} endings are asked for, and {len(usable)} held-out stories are "
                f"longer than a beginning of {c.beginning} ids; set endings={len(usable)}, a "
                "shorter beginning, or a larger held_out"
            )
        order = philox("stories endings", seed).permutation(len(usable))[:count]
        found = np.full((count, c.length + 1), -1, dtype=np.int64)
        for row, story in zip(found, usable[order], strict=True):
            own = corpus.held_out[edges[story] : min(edges[story + 1] + 1, edges[story] + len(row))]
            row[: len(own)] = own
        return found

    def loss(self, prediction: Tensor | FactoredLogits, target: Tensor) -> Tensor:
        """The mean cross-entropy of a window's ids, (B,)."""
        return token_loss(prediction, target).mean(dim=1)

    def metrics(self, prediction: Tensor, batch: Batch) -> dict[str, Tensor]:
        """nll a token, perplexity = exp(nll), and bits_per_byte of the text asked for, (B,)."""
        return self._of_losses(token_loss(prediction, batch.target), batch.target)

    def _of_losses(self, losses: Tensor, target: Tensor) -> dict[str, Tensor]:
        lengths = torch.from_numpy(self.corpus.vocabulary.byte_lengths)[target]
        nll = losses.mean(dim=1)
        return {
            "nll": nll,
            "perplexity": nll.exp(),
            # A window of ENDs alone has no text.
            "bits_per_byte": losses.sum(dim=1) / math.log(2) / lengths.sum(dim=1).clamp(min=1),
        }

    def floor(self, batch: Batch, context: EvaluationContext) -> dict[str, Tensor]:
        """The metrics of the stories' own endings, graded too where there is a grader."""
        endings = self._endings(batch)
        return endings.metrics(endings.true) | self._grades(endings, endings.true, context)

    def supports_model(self, model: Any) -> str | None:
        """Without a decoder of its own, a model must answer after every prefix to generate."""
        decoder = model.decoder() if self.config.cache and offers(model, Decodes) else None
        decodes = decoder is not None
        if self.config.endings and self.config.prefixes is not None and not decodes:
            return "endings need a model that answers after every prefix; set endings=0"
        return None

    def evaluate(self, model: Any, batch: Batch, context: EvaluationContext) -> dict[str, Tensor]:
        """The metrics, those of generated endings, and a grader's where there is one."""
        target = batch.target
        size = max(1, AT_ONCE // (target.shape[1] * self.signature.output_width))
        size = min(size, context.batch_size or size)
        losses = []
        for start in range(0, len(target), size):
            prompt = Text(batch.prompt.ids[start : start + size].to(context.device))
            wanted = target[start : start + size].to(context.device)
            losses.append(token_loss(model(prompt).double(), wanted).cpu())
        values = self._of_losses(torch.cat(losses), target)
        endings = self._endings(batch)
        generated = endings.generate(model, context)
        values |= endings.metrics(generated)
        return values | self._grades(endings, generated, context)

    def completions(self, models: int, prompts: int) -> int:
        """The endings that a grader gets in a run, the true ones with them."""
        return (models + 1) * min(prompts, self.config.endings)

    def _grades(
        self, endings: Endings, written: list[list[int]], context: EvaluationContext
    ) -> dict[str, Tensor]:
        return self.grades(endings.completions(written), context) if context.grader else {}

    def _endings(self, batch: Batch) -> Endings:
        return Endings(self.config, self.corpus.vocabulary, batch.truth["stories"])
