"""The plugin is registered, conforms, and computes its formula."""

from importlib import metadata

import pytest
import torch
from iclbench_hyena_lite import HyenaLite, HyenaLiteMixer

from iclbench import SequenceConfig, Task, check_architecture, host


def least_squares(name: str = "least-squares", examples: int = 20) -> Task:
    """Return one of the harness's tasks with this many examples in the context."""
    task = host().load("task", name, Task)
    return task(task.Config(examples=examples))


def test_entry_point_is_registered():
    """The installed plugin is listed under its name and loads."""
    (point,) = metadata.entry_points(group="iclbench", name="hyena-lite")
    assert point.value == "iclbench_hyena_lite"
    plugin, entry = host().provider("model", "hyena-lite")
    assert plugin.distribution == "iclbench-hyena-lite"
    assert plugin.problem is None
    assert entry.target is HyenaLite


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("examples", [1, 20])
def test_conforms(causal, examples):
    """The model answers short and long prompts, and reads ahead only if it is not causal."""
    config = SequenceConfig(layers=2, causal=causal)
    check_architecture(HyenaLite(), least_squares(examples=examples), config)


def test_conforms_on_a_task_that_needs_causality():
    """On prefixes, later tokens contain the answers."""
    task = least_squares("least-squares-prefixes")
    check_architecture(HyenaLite(), task, SequenceConfig(layers=2))
    assert "not causal" in HyenaLite().supports(task.signature, SequenceConfig(causal=False))


def test_layer_matches_the_formula():
    """Compare with Σ_s exp(−|t−s| / span) k_s v_s in a loop, over s ≤ t or over every s."""
    for causal in (True, False):
        mixer = HyenaLiteMixer(3, 7, causal, init_std=1.0).double()
        x = torch.randn(2, 7, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        q, k, v = mixer.qkv(x).chunk(3, dim=-1)
        rows = []
        for t in range(7):
            visible = range(t + 1 if causal else 7)
            span = mixer.log_span.exp()
            terms = [torch.exp(-abs(t - s) / span) * (k * v)[:, s] for s in visible]
            rows.append(q[:, t] * sum(terms))
        torch.testing.assert_close(mixer(x), mixer.output(torch.stack(rows, dim=1)))


def test_replicas_can_be_stacked():
    """Under vmap over stacked parameters, every model's output is unchanged."""
    mixers = [HyenaLiteMixer(4, 6, True, init_std=1.0) for _ in range(3)]
    x = torch.randn(3, 2, 6, 4, generator=torch.Generator().manual_seed(0))
    stacked, _ = torch.func.stack_module_state(mixers)
    vmapped = torch.func.vmap(lambda p, x: torch.func.functional_call(mixers[0], p, (x,)))
    separate = torch.stack([mixer(row) for mixer, row in zip(mixers, x, strict=True)])
    torch.testing.assert_close(vmapped(stacked, x), separate)
