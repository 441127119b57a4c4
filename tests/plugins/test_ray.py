"""The executor `ray` on a real Ray cluster of two nodes, which the test starts."""

from __future__ import annotations

import json
import os
import re
import signal
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
from cluster_sweep import (
    CELLS,
    KILLED,
    PREEMPTED,
    ClusterSweep,
    shown_on_failure,
    wait_until,
)
from support import run_python

from iclbench import UsageError, check_executor
from iclbench.sweeps.executors.probes import answer
from iclbench_ray import task
from iclbench_ray.executor import Ray, RayConfig

pytestmark = [
    pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed"),
    # Of Ray's own modules, when they are imported.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@contextmanager
def two_nodes(environment: dict[str, str]) -> Iterator[tuple[str, Path]]:
    """A cluster of two nodes of one core; its address, and the folder of its workers' logs."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # A machine whose memory others use up is no reason to kill a worker.
        patch.setenv("RAY_memory_monitor_refresh_ms", "0")
        # Beside other tests, workers that are nice would hardly run.
        patch.setenv("RAY_worker_niceness", "0")
        small = {"num_cpus": 1, "object_store_memory": 100 * 2**20}
        cluster = Cluster(initialize_head=True, head_node_args=small)
        try:
            cluster.add_node(**small)
            yield cluster.address, Path(cluster.head_node.get_logs_dir_path())
        finally:
            cluster.shutdown()


@pytest.mark.slow
def test_twelve_cells_are_killed_preempted_and_continued_to_the_same_bits(tmp_path):
    cluster = ClusterSweep(tmp_path, "ray", "")
    with shown_on_failure((tmp_path, "*.log")), two_nodes(cluster.environment) as (address, logs):
        cluster.executor = (*cluster.executor[:3], f"address={address}")
        driver = cluster.start(tmp_path / "first.log")
        try:
            first = cluster.wait_until_held(KILLED), cluster.wait_until_held(PREEMPTED)
            # Ray runs both once more.
            os.kill(first[0], signal.SIGKILL)
            os.kill(first[1], signal.SIGTERM)
            second = (
                cluster.wait_until_held(KILLED, after=first[0]),
                cluster.wait_until_held(PREEMPTED, after=first[1]),
            )
        finally:
            driver.kill()
            driver.wait()
        wait_until(lambda: not any(map(is_alive, second)), "the workers of a killed driver end")

        cluster.release()
        driver = cluster.start(tmp_path / "second.log")
        try:
            wait_until(lambda: driver.poll() is not None, "the second driver")
        finally:
            driver.kill()
        output = (tmp_path / "second.log").read_text()
        assert driver.returncode == 0, output
        messages = "".join(file.read_text() for file in logs.glob("worker-*.err"))
        # The preempted one at its signal.
        assert "saved at step" in messages
        # Two programs, run again by Ray and then by the second driver.
        assert len(re.findall(r"continuing from step [1-9]", messages)) == 4
        cluster.assert_twelve_records_of_the_same_bits(tmp_path / "local")
        asked = cluster.run("--status")
        assert asked.stdout == f"{CELLS} runs: {CELLS} done\n", asked


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_ray_keeps_the_promises_of_executors_and_each_job_has_a_process(tmp_path):
    with two_nodes({}) as (address, _):
        ray = Ray(RayConfig(address=address, num_cpus=0.5), tmp_path / "jobs")
        check_executor(ray, folder=tmp_path)
        job = {"seconds": 0, "ends_by": "return", "value": None}
        outcomes = [outcome for _, outcome in ray.map(answer, [job] * 3, workers=1)]
        assert len({tuple(outcome["process"]) for outcome in outcomes}) == 3


class Reusing(Ray):
    """Ray with processes that run many tasks: starting a thousand would take minutes."""

    tasks_per_process = 0


@pytest.mark.slow
def test_memory_of_the_driver_stays_flat_over_a_thousand_jobs(tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_worker_niceness", "0")
    jobs = [{"index": index} for index in range(1000)]
    outcomes = Reusing(RayConfig(), tmp_path).map(dict, jobs, workers=8)
    sizes = []
    tracemalloc.start()
    try:
        for count, (index, outcome) in enumerate(outcomes):
            assert outcome == jobs[index]
            if count in {300, 999}:
                sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    before, after = sizes
    assert after < before + 200_000  # 300 bytes of each job


def test_a_job_that_exits_is_an_error_of_its_own():
    assert task._answer("sys:exit", "3") == {"error": "SystemExit: 3"}


def test_a_job_may_name_files_relative_to_the_folder_that_it_came_from(tmp_path):
    code = "import sys; from iclbench_ray.task import answer; print(answer(*sys.argv[1:]))"
    words = ("-c", code, "os.path:abspath", '"weights"', str(tmp_path / "stop"))
    outcome = run_python(*words, str(tmp_path), path=tmp_path)
    assert json.loads(outcome.stdout) == {"result": str(tmp_path / "weights")}, outcome.stderr
    elsewhere = run_python(*words, str(tmp_path / "missing"), path=tmp_path)
    assert json.loads(elsewhere.stdout) == {"result": str(Path("weights").absolute())}


@pytest.mark.slow
def test_a_cluster_that_does_not_answer_is_one_line(tmp_path):
    with pytest.raises(UsageError, match=r"^executor ray: .*$"):
        list(Ray(RayConfig(address="nonesuch"), tmp_path).map(dict, [{}], 1))
