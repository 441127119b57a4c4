"""Recurrent mixers: linear attention with decay, delta rules and selective state spaces."""

from iclbench import Entry, hookimpl

_HOME = "iclbench_recurrent.architecture"


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """Provide seven recurrent sequence models."""
    return [
        Entry("mamba", "selective state space model, S6 (Gu and Dao 2023)", f"{_HOME}:Mamba"),
        Entry("mamba2", "selective state space model with one decay per head (Dao and Gu 2024)",
              f"{_HOME}:Mamba2"),
        Entry("gated-linear-attention", "linear attention with input-dependent decays of each key "
              "channel (Yang et al. 2023)",
              f"{_HOME}:GatedLinearAttention"),
        Entry("retention", "linear attention with fixed decays: RetNet (Sun et al. 2023)",
              f"{_HOME}:Retention"),
        Entry("delta-net", "linear attention with the delta rule, once or several times per "
              "position (Yang et al. 2024)",
              f"{_HOME}:DeltaNet"),
        Entry("gated-delta-net", "linear attention with the delta rule and a decay (Yang, Kautz "
              "and Hatamizadeh 2024)",
              f"{_HOME}:GatedDeltaNet"),
        Entry("hgrn2", "gated linear RNN with an outer-product state (Qin et al. 2024)",
              f"{_HOME}:HGRN2"),
    ]  # fmt: skip
