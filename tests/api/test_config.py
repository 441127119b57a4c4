"""Configurations: fields added later, and what is said of unknown ones."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import pytest
import torch
from pydantic import Field

from iclbench import UsageError
from iclbench.api.config import Config, added_later, parse_config


def test_field_added_later_is_omitted_from_a_dump_at_its_default():
    class Old(Config):
        a: int = 1

    class New(Old):
        b: int = added_later(2, ge=0, description="new")

    assert New().model_dump() == Old().model_dump() == {"a": 1}
    assert New(b=3).model_dump(mode="json") == {"a": 1, "b": 3}


class Inner(Config):
    width: int = 1


class Other(Config):
    height: int = 1


class Outer(Config):
    one: Inner = Inner()
    several: list[Inner] = []
    named: dict[str, Inner] = {}
    either: Inner | Other | None = None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"oen": {}}, "unknown field 'oen'; did you mean 'one'?"),
        ({"one": {"widht": 2}}, "unknown field 'one.widht'; did you mean 'width'?"),
        ({"several": [{}, {"widht": 2}]}, "unknown field 'several.1.widht'; did you mean 'width'?"),
        ({"named": {"a": {"one": 2}}}, "unknown field 'named.a.one'; known: width"),
        ({"either": {"heigth": 2}}, "unknown field 'either.Other.heigth'; did you mean 'height'?"),
    ],
)
def test_the_nearest_field_is_one_of_where_the_unknown_one_stands(values, message):
    with pytest.raises(UsageError) as error:
        parse_config(Outer, values, "outer")
    assert message in str(error.value)


class Numbers(Config):
    count: int = 1
    limit: int | None = None
    rate: float | None = None
    flag: bool | int = 0


@pytest.mark.parametrize("name", ["count", "limit", "rate"])
def test_true_is_no_number(name):
    with pytest.raises(UsageError, match=f"{name}: a number is needed"):
        parse_config(Numbers, {name: True}, "numbers")
    assert getattr(parse_config(Numbers, {name: 3}, "numbers"), name) == 3
    assert parse_config(Numbers, {"flag": True}, "numbers").flag is True


class Lists(Config):
    sizes: tuple[int, ...] = ()
    pairs: list[tuple[int, Annotated[int, Field(ge=0)]]] = []
    nested: dict[str, tuple[float, ...]] = {}


@pytest.mark.parametrize(
    "values", [{"sizes": [1, True]}, {"pairs": [[1, 2], [3, True]]}, {"nested": {"a": (1, True)}}]
)
def test_true_among_numbers_is_named_alone(values):
    with pytest.raises(UsageError, match=rf"{next(iter(values))}: a number .* \(got True\)"):
        parse_config(Lists, values, "lists")


def test_the_first_of_several_wrong_fields_is_named():
    values = {"nested": {"a": (True,)}, "sizes": [False]}
    with pytest.raises(UsageError, match=r"nested: a number is needed \(got True\)"):
        parse_config(Lists, values, "lists")


def test_numbers_of_numpy_and_torch_are_numbers():
    values = {"count": np.int64(3), "limit": torch.tensor(4), "rate": np.float32(0.5)}
    assert parse_config(Numbers, values, "numbers") == Numbers(count=3, limit=4, rate=0.5)
    lists = {"sizes": np.arange(3), "nested": {"a": (np.float64(1), 2)}}
    assert parse_config(Lists, lists, "lists") == Lists(sizes=(0, 1, 2), nested={"a": (1.0, 2.0)})
    with pytest.raises(UsageError, match="count"):
        parse_config(Numbers, {"count": np.float64(0.5)}, "numbers")
    with pytest.raises(UsageError, match="count: a number is needed"):
        parse_config(Numbers, {"count": np.True_}, "numbers")
