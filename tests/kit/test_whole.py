"""The checks of a plugin as a whole."""

from __future__ import annotations

import pytest

from iclbench import ConformanceError, host
from iclbench.kit.whole import checks_of_plugin


def test_a_problem_is_that_of_the_plugin_that_it_names(monkeypatch):
    """The label of `gd-transformer` ends like that of `transformer`."""
    short, long = (
        next(plugin for plugin in host().plugins if plugin.name == name)
        for name in ("transformer", "gd-transformer")
    )
    assert long.label.endswith(short.label)
    monkeypatch.setattr(host(), "problems", [f"{long.label} is left out: it is broken"])
    assert dict(checks_of_plugin(short))["loads"]()
    with pytest.raises(ConformanceError, match=r"gd-transformer .* is left out: it is broken"):
        dict(checks_of_plugin(long))["loads"]()
