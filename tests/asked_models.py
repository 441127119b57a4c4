"""Language models that are functions, and records of what they answered."""

from __future__ import annotations

import itertools
import math

from iclbench import Asked, Config


class Parrot(Asked):
    """Answers a question with the last output that it shows, and remembers what it was asked."""

    name = "parrot"
    Config = Config
    asked: list[str]

    def supports(self, signature, config):
        return None if signature.target == "query" else "it repeats outputs"

    def questions(self, prompt, signature, config):
        return [
            "\n".join(f"{x} → {y}" for x, y in zip(xs, ys, strict=True)) + f"\n{query[0]} →"
            for xs, ys, query in zip(
                prompt.x.tolist(), prompt.y.tolist(), prompt.query.tolist(), strict=True
            )
        ]

    def ask(self, questions, config, device):
        self.asked += questions
        for question in questions:
            yield question.splitlines()[-2].partition("→ [")[2]

    def read(self, answer, signature, config):
        try:
            number = float(answer.rstrip("]"))
        except ValueError:
            return [0.0]
        return [number if math.isfinite(number) else 0.0]

    def identity(self, config):
        return "a parrot"


def parrot(**changes) -> type[Parrot]:
    """A class of its own with other methods, and an empty list of what it was asked."""
    return type("Parrot", (Parrot,), {"asked": [], **changes})


def once() -> type[Parrot]:
    """A parrot that can be asked by one call alone."""
    calls = itertools.count()

    def ask(self, questions, config, device):
        assert next(calls) == 0, "asked again"
        yield from Parrot.ask(self, questions, config, device)

    return parrot(ask=ask)
