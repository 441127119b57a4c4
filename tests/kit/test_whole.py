"""What the kit looks at in a plugin besides its entries."""

from __future__ import annotations

import pytest

from iclbench import UsageError
from iclbench.kit.whole import _reads

SOUND = 'out = "r"\n[[grid]]\nmodel = "zero"\ntask = "ridge"\n'


@pytest.mark.parametrize(("more", "message"), [
    ("learning_rates = [1, 2]\n", "unknown field 'learning_rates'"),
    ('init = "@nobody"\n', "no grid before this one has the name 'nobody'"),
    ("[sizes.big]\ndefaults = { seedz = 3 }\n", "unknown field 'seedz'"),
])  # fmt: skip
def test_a_sweep_file_with_a_mistake_in_a_grid_or_a_size_is_refused(tmp_path, more, message):
    path = tmp_path / "study.toml"
    path.write_text(SOUND)
    assert _reads([path]) == "1 sweep file"
    path.write_text(SOUND + more)
    with pytest.raises(UsageError, match=message):
        _reads([path])
