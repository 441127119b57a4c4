"""The tracker `mlflow`: runs of MLflow, on a tracking server or in a folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from iclbench import Config, Record, Tracker, UsageError

from .packages import import_package

#: The longest value of a parameter that every store takes.
MOST_CHARACTERS = 500


class MLflowConfig(Config):
    """Where the runs go. Passwords and tokens come from MLflow's own variables alone."""

    uri: str | None = Field(
        None, description="tracking server or folder; default: MLFLOW_TRACKING_URI or OUT/mlflow"
    )
    experiment: str = Field("iclbench", description="name of the experiment in MLflow")

    @field_validator("uri")
    @classmethod
    def _has_no_secret(cls, value: str | None) -> str | None:
        # A UsageError, since the message of a ValueError would show the value.
        if value is not None and "@" in value.partition("://")[2].split("/")[0]:
            raise UsageError(
                "tracker mlflow: uri must not contain a user or a password: give the address by "
                "MLFLOW_TRACKING_URI, or a server's by MLFLOW_TRACKING_USERNAME and …_PASSWORD"
            )
        return value


class MLflow(Tracker):
    """One run of MLflow per run, with the record as an artifact."""

    name = "mlflow"
    Config = MLflowConfig

    def __init__(self, config: MLflowConfig, out: Path) -> None:
        super().__init__(config, out)
        self._client: Any = None
        self._id = ""
        self._step = 0

    @classmethod
    def prepare(cls, config: MLflowConfig) -> None:
        """See `Tracker.prepare`."""
        import_package("mlflow", cls.name)

    def start(self, spec: Any, settings: Mapping[str, Any]) -> None:
        """See `Tracker.start`."""
        given = self.config.uri or os.environ.get("MLFLOW_TRACKING_URI")
        if given and given.startswith("~"):
            given = str(Path(given).expanduser())
        uri = given or (self.out / "mlflow").resolve().as_uri()
        if uri.startswith("file:") or "://" not in uri:
            # Asking for a folder is the consent that MLflow wants by this variable.
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        self._client = import_package("mlflow", self.name).MlflowClient(uri)
        name = self.config.experiment
        experiment = self._client.get_experiment_by_name(name)
        number = experiment.experiment_id if experiment else self._client.create_experiment(name)
        run = self._client.create_run(
            number, run_name=f"{spec.model}-{spec.id}", tags={"task": spec.task, "id": spec.id}
        )
        self._id = run.info.run_id
        for key, value in settings.items():
            self._client.log_param(self._id, key, str(value)[:MOST_CHARACTERS])

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """See `Tracker.log`."""
        self._step = step
        for name, value in values.items():
            self._client.log_metric(self._id, name, value, step=step)

    def finish(self, record: Record, summary: Mapping[str, float]) -> None:
        """See `Tracker.finish`."""
        for name, value in summary.items():
            self._client.log_metric(self._id, f"result/{name}", value, step=self._step)
        # Below a key: a file that begins like a record would be taken for one in OUT.
        content = {"record": record.model_dump(mode="json")}
        self._client.log_dict(self._id, content, "record.json")
        self._client.set_terminated(self._id, "FINISHED")

    def fail(self, error: BaseException) -> None:
        """See `Tracker.fail`."""
        self._client.set_terminated(self._id, "FAILED")
