"""Configurations: fields added later."""

from __future__ import annotations

from iclbench.api.config import Config, added_later


def test_field_added_later_is_omitted_from_a_dump_at_its_default():
    class Old(Config):
        a: int = 1

    class New(Old):
        b: int = added_later(2, ge=0, description="new")

    assert New().model_dump() == Old().model_dump() == {"a": 1}
    assert New(b=3).model_dump(mode="json") == {"a": 1, "b": 3}
