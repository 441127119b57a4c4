"""Imports of plugins: what they print, slow ones, and a Ctrl-C meanwhile."""

from __future__ import annotations

import json
import signal
import sys
import threading

import pytest
from fake_distributions import write_distribution, write_plugin
from fake_plugins import choose_plugins, offer_model
from support import run_python

from iclbench import PluginError, discovery
from iclbench.discovery import guarded
from iclbench.plugins import PluginHost

PRINTS = """
    import ctypes, os, subprocess, sys
    print("by print")
    print("by the first stream", file=sys.__stdout__)
    os.write(1, b"by write\\n")
    subprocess.run(["echo", "by a process"])
    ctypes.CDLL(None).puts(b"by C")
    {}

    @hookimpl
    def iclbench_architectures():
        print("by a hook")
        return [Entry("talking", "a model", "talking_plugin:X")]
"""
PRINTED = {"by print", "by the first stream", "by write", "by a process", "by C"}


@pytest.mark.parametrize("end", ["", "1 / 0"], ids=["sound", "broken"])
def test_what_a_plugin_prints_goes_to_standard_error(package_folder, end):
    write_plugin(package_folder, "talking", PRINTS.format(end))
    done = run_python("-m", "iclbench", "ls", "models", "--json", path=package_folder)
    assert done.returncode == 0
    names = [row["name"] for row in json.loads(done.stdout)]
    assert ("talking" in names) == (not end)
    printed = {line for line in done.stderr.splitlines() if line.startswith("by ")}
    assert printed == PRINTED | (set() if end else {"by a hook"})


def test_what_a_target_prints_goes_to_standard_error(package_folder, cli, monkeypatch):
    source = "print('loud')\nfrom iclbench_solvers.simple import Zero\nclass X(Zero): name = 'loud'"
    write_plugin(package_folder, "loud", offer_model("loud", "loud_parts:X"))
    (package_folder / "loud_parts.py").write_text(source)
    choose_plugins(monkeypatch, "loud")
    outcome = cli("describe", "loud")
    assert (outcome.code, outcome.err) == (0, "loud\n")
    assert outcome.out.startswith("loud: model of the plugin loud ")


def test_output_is_restored_after_imports_in_several_threads(capfd):
    entered, leave = threading.Event(), threading.Event()

    def work() -> None:
        with guarded("the first"):
            entered.set()
            leave.wait(30)

    thread = threading.Thread(target=work)
    with guarded("the second"):
        thread.start()
        entered.wait(30)
    print("while one is inside")
    leave.set()
    thread.join()
    print("after both")
    assert capfd.readouterr() == ("after both\n", "while one is inside\n")


def test_a_slow_import_is_named_and_a_fast_one_is_not(package_folder, monkeypatch, capsys):
    write_plugin(package_folder, "fast", offer_model("fast"))
    write_plugin(package_folder, "slow", "import time\ntime.sleep(0.6)\n" + offer_model("slow"))
    PluginHost(only=["fast"])
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(discovery, "SLOW_SECONDS", 0.2)
    PluginHost(only=["slow"])
    line = "iclbench: plugin slow (iclbench-slow 1.0) has been loading for 0.2 s, with what it "
    assert line in capsys.readouterr().err
    assert not [t for t in threading.enumerate() if isinstance(t, threading.Timer)]


@pytest.fixture
def interruptible():
    """The signal handler that Python starts with."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


INTERRUPTED = {
    "passes": "signal.raise_signal(signal.SIGINT)",
    "catches": "try: signal.raise_signal(signal.SIGINT)\nexcept KeyboardInterrupt: pass",
    "replaces": "try: signal.raise_signal(signal.SIGINT)\nexcept BaseException: raise ValueError",
}


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("source", INTERRUPTED.values(), ids=INTERRUPTED)
def test_a_user_s_interrupt_during_an_import_ends_the_command(package_folder, cli, source):
    name = f"interrupted{list(INTERRUPTED.values()).index(source)}"
    write_plugin(package_folder, name, f"import signal\n{source}")
    outcome = cli("ls")
    assert (outcome.code, outcome.out, outcome.err) == (130, "", "iclbench: interrupted\n")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("interruptible")
def test_a_plugin_does_not_keep_the_signal_for_itself(package_folder):
    source = "import signal\nsignal.signal(signal.SIGINT, lambda *_: None)\n" + offer_model("deaf")
    write_distribution(package_folder, "iclbench-deaf", {"deaf": "deaf"}, deaf=source)
    assert PluginHost(only=["deaf"]).problems == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_another_end_of_the_process_is_an_error_of_the_plugin():
    for error in (SystemExit(3), KeyboardInterrupt(), GeneratorExit()):
        with pytest.raises(PluginError, match=type(error).__name__), guarded("something"):
            raise error
    assert sys.stdout is not sys.stderr
