"""What `--executor-args` of the executor `slurm` may set."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator, model_validator

from iclbench import Config

from .environment import OURS


class SlurmConfig(Config):
    """The arguments of the executor `slurm`: names and meanings are submitit's."""

    partition: str | None = Field(None, description="Slurm partition to submit to")
    account: str | None = Field(None, description="account to charge")
    qos: str | None = Field(None, description="quality of service (QOS)")
    constraint: str | None = Field(
        None, description="features that a node must have (`--constraint` of sbatch)"
    )
    gpus_per_node: int | None = Field(None, ge=0, description="number of GPUs per program")
    cpus_per_task: int | None = Field(None, ge=1, description="number of cores per program")
    mem_gb: float | None = Field(None, gt=0, description="memory per program, in GB")
    timeout_min: int = Field(
        60, ge=1, description="time limit of a program, in minutes; it is requeued afterwards"
    )
    signal_delay_s: int = Field(
        90, ge=1, description="seconds before the time limit at which a checkpoint is saved"
    )
    max_num_timeout: int = Field(
        1000, ge=0, description="maximum number of times that a program is requeued"
    )
    array_parallelism: int | None = Field(
        None, ge=1, description="maximum number of programs that run at once; null: --workers"
    )
    array_size: int = Field(
        1000, ge=1, description="maximum number of programs in a job array; the site may limit it"
    )
    setup: tuple[str, ...] = Field(
        (), description="shell commands to run before a program, such as module load"
    )
    python: str | None = Field(
        None, description="command that starts Python, such as one in a container"
    )
    additional_parameters: dict[str, Any] = Field({}, description="further options of sbatch")
    poll_seconds: float = Field(10.0, gt=0, description="seconds between queries of the queue")

    @model_validator(mode="after")
    def _warns_after_the_start(self) -> SlurmConfig:
        if self.signal_delay_s >= 60 * self.timeout_min:
            raise ValueError(
                f"signal_delay_s={self.signal_delay_s} must be less than the time limit, "
                f"timeout_min={self.timeout_min}"
            )
        return self

    @field_validator("additional_parameters")
    @classmethod
    def _leaves_ours(cls, given: dict[str, Any]) -> dict[str, Any]:
        for name in (key.replace("-", "_") for key in given):
            if name in OURS:
                raise ValueError(f"{name} is iclbench's own: jobs are found and continued by it")
            if name in cls.model_fields:
                raise ValueError(f"{name} is an argument of the executor itself")
        return given
