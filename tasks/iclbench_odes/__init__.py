"""In-context operators of linear differential equations."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_tasks() -> list[Entry]:
    """Provide ode-operator."""
    return [
        Entry(
            "ode-operator",
            "solve a linear differential equation that is given only by examples (Liu et al. 2025)",
            "iclbench_odes.task:OdeOperator",
        )
    ]
