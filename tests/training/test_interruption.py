"""SIGINT and SIGTERM: where they are raised, where they wait, and what a second one does."""

from __future__ import annotations

import signal
import threading
from contextlib import suppress

import pytest

from iclbench.api.errors import Interrupted
from iclbench.training.interruption import SIGNALS, deferred, ignore, interruptible


@pytest.fixture(autouse=True)
def handlers():
    """Every test leaves the handlers of before."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield before
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_raises_and_the_handlers_of_before_come_back(handlers, number, code):
    with pytest.raises(Interrupted) as caught, interruptible():
        signal.raise_signal(number)
    assert caught.value.exit_code == code
    assert {n: signal.getsignal(n) for n in SIGNALS} == handlers


def test_without_a_signal_nothing_changes(handlers):
    with interruptible(), interruptible(), deferred() as signal_received:
        assert signal_received() is None
        assert signal.getsignal(signal.SIGINT) is not handlers[signal.SIGINT]
    assert {n: signal.getsignal(n) for n in SIGNALS} == handlers


def test_a_deferred_signal_waits_and_a_second_one_does_not():
    with deferred() as signal_received:
        signal.raise_signal(signal.SIGINT)
        assert signal_received() == signal.SIGINT
        with pytest.raises(KeyboardInterrupt) as caught:
            signal.raise_signal(signal.SIGINT)
    assert not isinstance(caught.value, Interrupted)


def test_a_second_signal_can_be_ignored():
    with interruptible(second=ignore), deferred() as signal_received:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        assert signal_received() == signal.SIGTERM


def test_a_signal_that_was_swallowed_is_raised_at_the_next_block():
    """An exception within a destructor, for example, is lost."""
    with interruptible():
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Interrupted) as caught, deferred():
            pytest.fail("the block was entered")
    assert caught.value.signal_number == signal.SIGTERM


def test_signals_that_are_ignored_or_have_a_handler_keep_it():
    received = []
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    with deferred() as signal_received:
        for number in SIGNALS:
            signal.raise_signal(number)
        assert signal_received() is None
    assert received == [signal.SIGTERM]


def test_other_threads_install_nothing(handlers):
    seen = []

    def look():
        with deferred() as signal_received:
            seen.append((signal_received(), signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [(None, handlers[signal.SIGINT])]


def test_a_block_within_a_block_does_not_end_the_outer_one():
    with deferred() as signal_received:
        with deferred():
            pass
        signal.raise_signal(signal.SIGINT)
        assert signal_received() == signal.SIGINT
