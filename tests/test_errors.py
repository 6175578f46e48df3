"""Errors in Python: a stop isn't an Exception, and survives a process boundary."""

import pickle

import numpy as np
import pytest

from seqtrain.api.estimator_input import series_of
from seqtrain.errors import Interrupted, SeqtrainError, SeqtrainWarning, python_names, warn


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


def test_an_interrupted_run_names_python_arguments_also_after_pickling():
    stopped = Interrupted(2, "resume with: seqtrain fit c.yaml --resume", in_python="resume=True")
    for error in (stopped, pickle.loads(pickle.dumps(stopped))):
        assert (str(error), error.exit_code) == ("resume=True", 130)
        assert error.problems == ("resume with: seqtrain fit c.yaml --resume",)


def test_a_warning_of_an_inner_function_names_the_line_outside_the_package():
    with pytest.warns(SeqtrainWarning) as caught:
        series_of(np.zeros((1, 2, 9)), "time_channels")
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        ("--run-dir: runs/a exists", "run_dir: runs/a exists"),
        ("name it with --label COLUMN", "name it with label=COLUMN"),
        ("replace it with --force", "replace it with force=True"),
        ("seqtrain init … --label 'my column'  # 2 values", "label='my column'  # 2 values"),
        ("""seqtrain init … --id 'it'"'"'s'""", 'id="it\'s"'),
        ("out: seqtrain init … --set data.bad_rows=drop", "out: settings=['data.bad_rows=drop']"),
        ("give --split validation or train", "give split='validation' or train"),
        ("give one with --data", "give one with data="),
        ("tokens: --set data.kind=features", "tokens: settings=['data.kind=features']"),
        ("--set data.kind=x: found x", "--set data.kind=x: found x"),
        ("seqtrain fit c.yaml --resume", "seqtrain fit c.yaml --resume"),
    ],
)
def test_errors_in_python_name_arguments(problem: str, expected: str):
    assert python_names(problem) == expected


def test_code_without_a_module_name_is_warned():
    """As the globals of exec() have it if the caller gives none."""
    with pytest.warns(SeqtrainWarning, match="rows"):
        exec("from seqtrain.errors import warn; warn('few rows')", {})
