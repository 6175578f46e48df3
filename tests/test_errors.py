"""Errors in Python: a stop isn't an Exception, and survives a process boundary."""

import pickle

import numpy as np
import pytest

import seqtrain
from seqtrain.api.estimator_input import padded_series
from seqtrain.errors import (
    CheckpointError,
    DataError,
    Interrupted,
    SeqtrainError,
    SeqtrainWarning,
    either,
    marked,
    parameter,
    ran_out_of_memory,
    warn,
)


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


def test_a_command_belongs_to_the_warning_above():
    with pytest.warns(SeqtrainWarning) as caught:
        warn("few rows; to add some:", "  cat a.csv", "  cat b.csv", "few labels")
    texts = [str(each.message) for each in caught]
    assert texts == ["few rows; to add some:\n  cat a.csv\n  cat b.csv", "few labels"]


def test_an_interrupted_run_names_python_arguments_also_after_pickling():
    stopped = Interrupted(2, either("resume with: seqtrain fit c.yaml --resume", "resume=True"))
    for error in (stopped, pickle.loads(pickle.dumps(stopped))):
        assert (str(error), error.exit_code) == ("resume=True", 130)
        assert error.problems == ("resume with: seqtrain fit c.yaml --resume",)


def test_a_warning_of_an_inner_function_names_the_line_outside_the_package():
    with pytest.warns(SeqtrainWarning) as caught:
        padded_series(np.zeros((1, 2, 9)), "time_channels")
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("message", "on_command_line", "in_python"),
    [
        (
            f"{parameter('run_dir')}: runs/a exists",
            "--run-dir: runs/a exists",
            "run_dir: runs/a exists",
        ),
        (
            f"name it with {parameter('label', 'COLUMN')}",
            "name it with --label COLUMN",
            "name it with label=COLUMN",
        ),
        (f"use {parameter('force', True)}", "use --force", "use force=True"),
        (f"give {parameter('split', 'test')}", "give --split test", "give split='test'"),
        (f"with {parameter('data')}", "with --data", "with data="),
        (either("--no-x", "x=False"), "--no-x", "x=False"),
        (
            marked("give --id COLUMN, or --run-dir"),
            "give --id COLUMN, or --run-dir",
            "give id=COLUMN, or run_dir=",
        ),
    ],
)
def test_an_error_names_the_argument_as_its_reader_writes_it(
    message: str, on_command_line: str, in_python: str
):
    error = DataError("a: b", message)
    assert error.problems == ("a: b", on_command_line)
    assert str(error) == f"a: b\n{in_python}"
    again = pickle.loads(pickle.dumps(error))
    assert (again.problems, str(again)) == (error.problems, str(error))


@pytest.mark.parametrize("text", ["models--org--name", "--force", "a --set b", "é--data x", "--"])
def test_text_of_the_user_that_resembles_an_option_is_shown_as_it_is(text: str):
    assert str(DataError(f"{text}: found '{text}'")) == f"{text}: found '{text}'"
    with pytest.warns(SeqtrainWarning) as caught:
        warn(text)
    assert str(caught[0].message) == text


def test_a_label_that_resembles_an_option_is_shown_as_it_is(tmp_path):
    table = {"s": ["a b"] * 8, "l": ["--force"] * 8}
    with pytest.raises(DataError) as caught:
        seqtrain.fit(
            {"data": {"sequence": "s", "label": "l"}},
            train=table,
            run_dir=tmp_path / "models--org--name",
            progress=False,
        )
    assert "force=" not in str(caught.value)
    with pytest.raises(CheckpointError, match="models--org--name"):
        seqtrain.load(tmp_path / "models--org--name")


def test_code_without_a_module_name_is_warned():
    """As the globals of exec() have it if the caller gives none."""
    with pytest.warns(SeqtrainWarning, match="rows"):
        exec("from seqtrain.errors import warn; warn('few rows')", {})


def test_lack_of_memory_is_found_behind_an_error_that_it_caused():
    try:
        try:
            raise ImportError("a.so: failed to map segment from shared object")
        except ImportError as cause:
            raise ImportError("the installation seems to be broken") from cause
    except ImportError as error:
        found = error
    assert ran_out_of_memory(found)
    assert not ran_out_of_memory(ImportError("the installation seems to be broken"))
