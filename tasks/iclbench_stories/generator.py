"""Stories generated from a seed: small and repetitive, and nothing is fetched."""

from __future__ import annotations

from iclbench import philox

NAMES = ("Lily", "Tom", "Mia", "Ben", "Anna", "Max", "Sue", "Tim", "Lucy", "Sam")
ANIMALS = ("dog", "cat", "bird", "fox", "bear", "frog", "mouse", "rabbit", "duck", "horse")
TRAITS = ("little", "happy", "brave", "shy", "clever", "lazy", "kind", "hungry")
THINGS = ("ball", "kite", "book", "hat", "drum", "boat", "lamp", "cake", "bell", "apple")
PLACES = ("forest", "garden", "river", "hill", "beach", "barn", "village", "meadow")
FEELINGS = ("sad", "afraid", "tired", "cold", "lost", "angry")

OPENINGS = (
    "Once upon a time, there was a {trait} {animal} named {name}.",
    "Once there was a {trait} {animal} called {name} who lived near the {place}.",
    "One day, a {trait} {animal} named {name} went to the {place}.",
)
MIDDLES = (
    "{name} loved the {thing} more than anything.",
    "Every morning {name} took the {thing} to the {place}.",
    "But one day, the {thing} was gone, and {name} was {feeling}.",
    "The {animal} looked in the {place}, but could not find the {thing}.",
    'Then {friend} came by and asked, "Why are you so {feeling}, {name}?"',
    '"I lost my {thing}," said {name}. "Will you help me?"',
    "{friend} said yes, and they went to the {place} together.",
    "They looked behind the tree and under the stone.",
    "It began to rain, and the {animal} felt {feeling}.",
    "{friend} gave {name} a piece of bread and told a funny tale.",
)
ENDINGS = (
    "At last {friend} found the {thing} in the {place}, and {name} was happy again.",
    "{name} and {friend} became best friends and played with the {thing} every day.",
    "From that day on, the {trait} {animal} was never {feeling} again.",
    "They went home and lived happily ever after.",
    "{name} learned that it is good to help a friend.",
)


def generated_stories(count: int, seed: int) -> list[str]:
    """`count` stories of 8 to 16 sentences; the first n of more are the same n."""
    return [_story(seed, number) for number in range(count)]


def _story(seed: int, number: int) -> str:
    draws = iter(philox("generated story", seed, number).random(16 + len(MIDDLES) + len(ENDINGS)))

    def one(words: tuple[str, ...]) -> str:
        return words[int(next(draws) * len(words))]

    def some(sentences: tuple[str, ...], least: int) -> list[str]:
        """`least` of them or more, in their order."""
        count = least + int(next(draws) * (len(sentences) - least + 1))
        ranks = sorted((next(draws), i) for i in range(len(sentences)))
        return [sentences[i] for i in sorted(i for _, i in ranks[:count])]

    name = one(NAMES)
    cast = {
        "name": name,
        "friend": one(tuple(n for n in NAMES if n != name)),
        "animal": one(ANIMALS),
        "trait": one(TRAITS),
        "thing": one(THINGS),
        "place": one(PLACES),
        "feeling": one(FEELINGS),
    }
    sentences = [one(OPENINGS), *some(MIDDLES, 5), *some(ENDINGS, 2)]
    return " ".join(sentence.format(**cast) for sentence in sentences)
