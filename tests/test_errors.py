"""Errors in Python: a stop isn't an Exception, and survives a process boundary."""

import pickle

import pytest

from seqtrain.errors import Interrupted, SeqtrainError, SeqtrainWarning, warn


def test_a_loop_that_catches_exceptions_ends_at_an_interrupt():
    assert issubclass(Interrupted, KeyboardInterrupt)
    assert not issubclass(Interrupted, Exception)


def test_an_interrupt_is_pickled_with_its_signal():
    again = pickle.loads(pickle.dumps(Interrupted(15, "stopped")))
    assert (again.exit_code, again.problems) == (143, ("stopped",))
    assert not isinstance(again, SeqtrainError)


def test_a_warning_names_the_line_of_the_caller():
    def public() -> None:
        warn("look here")

    with pytest.warns(SeqtrainWarning, match="look here") as caught:
        public()
    assert caught[0].filename == __file__
