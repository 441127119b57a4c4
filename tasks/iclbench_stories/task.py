"""The task `stories`: the next token, and the endings of held-out stories."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
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
    Text,
    UsageError,
    offers,
    philox,
    token_loss,
)

from .config import StoriesConfig
from .corpus import Corpus, open_corpus
from .endings import Endings
from .recipes import PAPER, QUICK
from .sources import TALES
from .tales import Tales
from .text_metrics import DISTINCT

#: What boards call the data.
TITLES = {"tales": "tales in the public domain", "generated": "generated stories (smoke test)"}
#: Elements of the logits that an evaluation holds at once.
AT_ONCE = 2**26


class Stories(GradedTask[StoriesConfig]):
    """Predict token t + 1 of packed stories from the tokens up to t; continue held-out stories.

    A window is T tokens; the target of each is the next token. `truth` holds a story for each of
    the first prompts: END, its beginning and its ending, up to T + 1 tokens in all, filled with −1.
    """

    name = "stories"
    version = 2
    Config = StoriesConfig
    recipes = {"paper": PAPER, "quick": QUICK}
    errors = {}
    fractions = frozenset({"repetition", *(f"distinct_{n}" for n in DISTINCT)})
    floor_name = "true ending"
    floor_summary = (
        "No floor of the loss: the true probabilities are unknown. Generated endings are compared "
        "with the true ending of each story."
    )

    @property
    def title(self) -> str:
        """The data: generated stories are no benchmark, and the title says so."""
        return f"{self.name}: {TITLES.get(self.config.data, self.config.data)}"

    @property
    def primary(self) -> Primary:
        """The held-out loss per token."""
        return Primary("nll")

    @property
    def corpus(self) -> Corpus:
        """The packed stories; packed on first use.

        Raises UsageError for data or a tokenizer that can't be used, and for too little text.
        """
        c = self.config
        seed = c.task_seed if "generated" in c.data.split("+") else 0
        corpus = open_corpus(
            data=c.data,
            column=c.column,
            revision=c.revision,
            tokenizer=c.tokenizer,
            vocabulary=c.vocabulary,
            held_out=c.held_out,
            seed=seed,
        )
        for name, stream in (("training", corpus.train), ("held-out", corpus.held_out)):
            if len(stream) <= c.length:
                raise UsageError(
                    f"stories: the {name} stories of {c.data} are {len(stream):,} ids together, "
                    f"fewer than a window of {c.length + 1}; give more text or a smaller length"
                )
        return corpus

    @property
    def data_digest(self) -> str | None:
        """SHA-256 of the packed stories and their tokenizer."""
        return self.corpus.digest

    @property
    def provenance(self) -> Mapping[str, Any]:
        """The sources with their licence, and the SHA-256, of the tales; {} for other data."""
        if self.config.data != TALES:
            return {}
        about = Tales().about
        return {"sources": about["sources"], "sha256": about["sha256"]}

    @property
    def signature(self) -> Signature:
        """T ids, read at every position, or at `prefixes` of them."""
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
        """The ids of windows (n, T + 1) and of stories, at most n; see the class.

        Raises UsageError if there are not enough held-out stories.
        """
        c, corpus = self.config, self.corpus
        total = (len(corpus.held_out) - 1) // c.length
        if n > total:
            raise UsageError(
                f"stories: {n} evaluation prompts are asked for, and the held-out stories are "
                f"{total} windows of {c.length} ids; use --eval-prompts {total} or fewer"
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
        """Ids (n, T + 1); adjacent windows share one id, so that each id is a target once."""
        positions = chosen[:, None] * self.config.length + np.arange(self.config.length + 1)
        return np.asarray(stream[positions]).astype(np.int64)

    def _stories(self, count: int, seed: int) -> np.ndarray:
        """T + 1 ids of held-out stories, END first, (count, T + 1), −1 after their end."""
        c, corpus = self.config, self.corpus
        edges = np.append(corpus.starts, len(corpus.held_out) - 1)
        # END, the beginning, and at least one more id.
        usable = np.flatnonzero(np.diff(edges) >= c.beginning + 2)
        if count > len(usable):
            raise UsageError(
                f"stories: {count} endings are asked for, and {len(usable)} held-out stories are "
                f"longer than a beginning of {c.beginning} ids; set endings={len(usable)}, a "
                "shorter beginning, or a larger held_out"
            )
        order = philox("stories endings", seed).permutation(len(usable))[:count]
        stories = np.full((count, c.length + 1), -1, dtype=np.int64)
        for row, story in zip(stories, usable[order], strict=True):
            ids = corpus.held_out[edges[story] : min(edges[story + 1] + 1, edges[story] + len(row))]
            row[: len(ids)] = ids
        return stories

    def sample_text(self) -> tuple[str, str] | None:
        """The first held-out window and the token after it, where nothing has to be fetched."""
        if self.config.data not in TITLES or self.config.tokenizer != "bpe":
            return None
        ids = self.corpus.held_out[: self.config.length + 1].tolist()
        decode = self.corpus.vocabulary.decode
        return decode(ids[:-1]), decode(ids[-1:])

    def loss(self, prediction: Tensor | FactoredLogits, target: Tensor) -> Tensor:
        """The mean cross-entropy of a window's ids, (B,)."""
        return token_loss(prediction, target).mean(dim=1)

    def metrics(self, prediction: Tensor, batch: Batch) -> dict[str, Tensor]:
        """nll per token, perplexity = exp(nll), and bits_per_byte of the targets' text, (B,)."""
        return self._of_losses(token_loss(prediction, batch.target), batch.target)

    def _of_losses(self, losses: Tensor, target: Tensor) -> dict[str, Tensor]:
        lengths = torch.from_numpy(self.corpus.vocabulary.byte_lengths)[target]
        nll = losses.mean(dim=1)
        return {
            "nll": nll,
            "perplexity": nll.exp(),
            # A window that holds only END has no text.
            "bits_per_byte": losses.sum(dim=1) / math.log(2) / lengths.sum(dim=1).clamp(min=1),
        }

    def chance(self, batch: Batch) -> dict[str, Tensor]:
        """The frequencies of ids in the training stories, plus one each, whatever the text."""
        size = self.signature.output_width
        counts = np.bincount(np.asarray(self.corpus.train), minlength=size) + 1
        losses = -torch.from_numpy(np.log(counts / counts.sum()))
        return self._of_losses(losses[batch.target], batch.target)

    def floor(self, batch: Batch, context: EvaluationContext) -> dict[str, Tensor]:
        """The metrics of the true endings, and their grades if there is a grader."""
        endings = self._endings(batch)
        return endings.metrics(endings.true) | self._grades(endings, endings.true, context)

    def mask_after(self, prompt: Text, position: int) -> Text:
        """Replaces every id after that read-out by another one."""
        signature = self.signature
        return prompt.masked_after(signature.readout[position], signature.vocabulary)

    def supports_model(self, model: Any) -> str | None:
        """A model that has no decoder must answer after every prefix to generate."""
        decoder = model.decoder() if self.config.cache and offers(model, Decodes) else None
        decodes = decoder is not None
        if self.config.endings and self.config.prefixes is not None and not decodes:
            return "endings need a model that answers after every prefix; set endings=0"
        return None

    def evaluate(self, model: Any, batch: Batch, context: EvaluationContext) -> dict[str, Tensor]:
        """The metrics, those of generated endings, and the grades if there is a grader."""
        target = batch.target
        size = max(1, AT_ONCE // (target.shape[1] * self.signature.output_width))
        size = min(size, context.batch_size or size)
        losses = []
        for start in range(0, len(target), size):
            prompt = Text(batch.prompt.ids[start : start + size].to(context.device))
            expected = target[start : start + size].to(context.device)
            losses.append(token_loss(model(prompt).double(), expected).cpu())
        values = self._of_losses(torch.cat(losses), target)
        endings = self._endings(batch)
        generated = endings.generate(model, context)
        values |= endings.metrics(generated)
        return values | self._grades(endings, generated, context)

    def completions(self, models: int, prompts: int) -> int:
        """The number of endings that a grader gets in a run, including the true ones."""
        return (models + 1) * min(prompts, self.config.endings)

    def _grades(
        self, endings: Endings, written: list[list[int]], context: EvaluationContext
    ) -> dict[str, Tensor]:
        return self.grades(endings.completions(written), context) if context.grader else {}

    def _endings(self, batch: Batch) -> Endings:
        return Endings(self.config, self.corpus.vocabulary, batch.truth["stories"])
