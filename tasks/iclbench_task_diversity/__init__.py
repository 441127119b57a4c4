"""How many pretraining tasks in-context learning needs (Raventós et al. 2023)."""

from iclbench import Entry, hookimpl

_HOME = "iclbench_task_diversity"


@hookimpl
def iclbench_tasks() -> list[Entry]:
    """Provide linear regression on a pool of tasks."""
    return [
        Entry("task-diversity", "noisy linear regression with weights from a pool of M vectors "
              "(Raventós et al. 2023)",
              f"{_HOME}.task:TaskDiversity"),
    ]  # fmt: skip


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """Provide the Bayes predictor of a pool."""
    return [
        Entry("discrete-mmse", "posterior mean over a pool of M weight vectors, which are its "
              "parameters (dMMSE)",
              f"{_HOME}.model:DiscreteMMSE"),
    ]  # fmt: skip
