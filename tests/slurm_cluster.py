"""A Slurm cluster of one node on this machine, for the tests of the executor `slurm`.

    python tests/slurm_cluster.py start FOLDER     prints the path for SLURM_CONF
    python tests/slurm_cluster.py stop FOLDER

It needs root and Debian's slurmctld, slurmd, slurm-client and munge. It accounts for nothing.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

CONFIGURATION = """
ClusterName=iclbench
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
SlurmUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmctldParameters=preempt_send_user_signal
# More cores than there are: a test waits for jobs, not for a place.
SlurmdParameters=config_overrides
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
KillWait=60
ReturnToService=2
SchedulerParameters=sched_min_interval=0,bf_interval=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
NodeName={host} NodeAddr=127.0.0.1 CPUs=16 RealMemory=1000 State=UNKNOWN
PartitionName=low Nodes=ALL Default=YES MaxTime=INFINITE PriorityTier=1 GraceTime=60
PartitionName=high Nodes=ALL MaxTime=INFINITE PriorityTier=2 PreemptMode=OFF
"""
SECONDS = 60


def start(folder: Path) -> Path:
    """Start the cluster; returns the path of its configuration once the node is idle."""
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    path = folder / "slurm.conf"
    path.write_text(
        CONFIGURATION.format(
            host=socket.gethostname().split(".")[0],
            folder=folder.resolve(),
            controller=_free_port(),
            daemon=_free_port(),
        )
    )
    _start_munge()
    environment = {**os.environ, "SLURM_CONF": str(path)}
    for daemon in ("slurmctld", "slurmd"):
        subprocess.run([daemon], env=environment, check=True, timeout=SECONDS)
    deadline = time.monotonic() + SECONDS
    while _node_state(environment) != "idle":
        if time.monotonic() > deadline:
            logs = [file.read_text()[-2000:] for file in sorted(folder.glob("*.log"))]
            raise SystemExit("the node does not become idle\n" + "\n".join(logs))
        time.sleep(0.2)
    return path


def stop(folder: Path) -> None:
    """End the daemons that `start` started for this folder."""
    for daemon in ("slurmd", "slurmctld"):
        with suppress(OSError, ValueError):
            os.kill(int((folder / f"{daemon}.pid").read_text()), signal.SIGTERM)


def _start_munge() -> None:
    if subprocess.run(["munge", "-n"], capture_output=True, check=False).returncode == 0:
        return
    subprocess.run(["install", "-d", "-o", "munge", "-g", "munge", "/run/munge"], check=True)
    subprocess.run(["runuser", "-u", "munge", "--", "/usr/sbin/munged"], check=True)


def _node_state(environment: dict[str, str]) -> str:
    words = ["sinfo", "--noheader", "--format", "%T", "--partition", "low"]
    answer = subprocess.run(
        words, env=environment, capture_output=True, encoding="utf-8", check=False, timeout=SECONDS
    )
    return answer.stdout.strip()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


if __name__ == "__main__":
    verb, where = sys.argv[1:]
    if verb == "start":
        print(start(Path(where)))
    else:
        stop(Path(where))
