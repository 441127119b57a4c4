"""Stories from a seed: small, repetitive, and always there."""

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
    """`count` stories of 8 to 16 sentences; the first of more are the same."""
    return [_story(seed, number) for number in range(count)]


def _story(seed: int, number: int) -> str:
    draw = philox("generated story", seed, number)

    def one(words: tuple[str, ...]) -> str:
        return words[int(draw.integers(len(words)))]

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
    order = draw.permutation(len(MIDDLES))[: int(draw.integers(5, len(MIDDLES) + 1))]
    middle = [MIDDLES[i] for i in sorted(order)]
    closing = draw.permutation(len(ENDINGS))[: int(draw.integers(2, len(ENDINGS) + 1))]
    sentences = [one(OPENINGS), *middle, *(ENDINGS[i] for i in sorted(closing))]
    return " ".join(sentence.format(**cast) for sentence in sentences)
