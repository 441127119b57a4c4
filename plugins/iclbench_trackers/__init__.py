"""Trackers: TensorBoard, Weights & Biases, MLflow. Each package is imported when it is used."""

from iclbench import Entry, hookimpl

_HOME = "iclbench_trackers"


@hookimpl
def iclbench_trackers() -> list[Entry]:
    """Provide tensorboard, wandb and mlflow."""
    return [
        Entry("tensorboard", "event files for TensorBoard",
              f"{_HOME}.tensorboard_tracker:TensorBoard"),
        Entry("wandb", "runs of Weights & Biases, online or offline",
              f"{_HOME}.wandb_tracker:WeightsAndBiases"),
        Entry("mlflow", "runs of MLflow, on a server or in a folder",
              f"{_HOME}.mlflow_tracker:MLflow"),
    ]  # fmt: skip
