"""Several processes train what one does; what they do when one fails, differs or is killed."""

import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch

from seqtrain.errors import ConfigError
from seqtrain.training.processes import SINGLE
from seqtrain.training.processes import launched as launched_processes
from tests.helpers.program import (
    KILLED,
    PATIENCE,
    UPDATE,
    Running,
    ended,
    fit,
    fit_arguments,
    signals_within,
    started,
    write_project,
)
from tests.helpers.tiny import fingerprint, series, sets, write_npz
from tests.helpers.vectors import write_vectors

Prepare = Callable[[], None]
FIT = ("fit", "c.yaml", "--run-dir", "several", "--quiet")


CARRIED = sets(
    "data.group=chat", "data.validation=said.tsv", "model.initial_state=carried",
    "training.max_epochs=1", "batching.batch_size=3",
)  # fmt: skip
"""Batches of 3 rows leave the last of 4 processes without any."""
PHASES = sets(
    "pretraining.objective=language_model", "pretraining.max_epochs=1", "model.vectors=w.vec",
    "model.freeze=1", "training.max_epochs=2", "model.bidirectional=true",
)  # fmt: skip
GRAMS = sets(
    "model.ngrams=[1, 2]", "model.subwords=[3, 4]", "training.optimizer=sgd", "data.min_count=2",
    "model.ngrams_spelling=true",
    "training.max_epochs=1", "batching.sort=module", "training.refit=true",
    "model.initial_state=random", "model.embedding_dropout=0.3", "training.label_smoothing=0.1",
)  # fmt: skip

SERIES = sets(
    "data={train: x.npz, validation: 0.3, kind: features}", "model.kernels=true",
    "training.max_epochs=1", "training.refit=true",
)  # fmt: skip


def write_chats(folder: Path) -> Path:
    """Write a config and its data; its rows belong to chats, and some to none."""
    write_project(folder)
    write_vectors(folder / "w.vec")
    write_npz(folder / "x.npz", series(40, seed=1), ["ab"[i % 2] for i in range(40)])
    for name in ("test", "train"):
        heading, *lines = (folder / f"{name}.tsv").read_text().splitlines()
        chats = ["" if row % 9 == 8 else f"c{row % 7 * (row % 3)}" for row in range(len(lines))]
        rows = [f"{line}\t{chat}\n" for line, chat in zip(lines, chats, strict=True)]
        (folder / f"{name}.tsv").write_text(f"{heading}\tchat\n{''.join(rows)}")
    (folder / "said.tsv").write_text((folder / "test.tsv").read_text() + "slip\tdown\t\n")
    return folder


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def take_place(variables: dict[str, str], prepare: Prepare | None) -> None:
    """Set what a launcher sets, and prepare the process."""
    os.environ |= variables
    if prepare is not None:
        prepare()


@contextmanager
def launched(
    folder: Path,
    size: int,
    *arguments: str,
    prepare: dict[int, Prepare] | None = None,
    restarts: int = 0,
    variables: dict[str, str] | None = None,
) -> Iterator[list[Running]]:
    """Start processes that train together; they are gone when the block is left.

    What `prepare` has for a rank is called in its process first; `restarts` were made before.
    """
    shared = {
        "WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "TORCHELASTIC_RUN_ID": "tests",
        "TORCHELASTIC_RESTART_COUNT": str(restarts),
        **(variables or {}),
    }
    with ExitStack() as held:
        yield [
            held.enter_context(
                started(
                    folder,
                    *arguments,
                    prepare=partial(
                        take_place, {**shared, "RANK": str(rank)}, (prepare or {}).get(rank)
                    ),
                )
            )
            for rank in range(size)
        ]


def fit_together(
    folder: Path,
    run: str,
    size: int,
    *options: str,
    prepare: dict[int, Prepare] | None = None,
    code: int = 0,
) -> list[Running]:
    """Train, or go on with a run that has begun, until all processes have ended with a code.

    The first process alone prints.
    """
    with launched(folder, size, *fit_arguments(folder, run, *options), prepare=prepare) as ranks:
        codes = [rank.end() for rank in ranks]
        assert codes == [code] * size, [rank.err for rank in ranks]
    assert not any(rank.out or rank.err for rank in ranks[1:]), [rank.err for rank in ranks]
    return ranks


@pytest.fixture
def project(tmp_path) -> Path:
    return write_chats(tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> dict[str, str]:
    """The fingerprint of the project's run by two processes that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    fit_together(write_chats(folder), "whole", 2)
    return fingerprint(folder / "whole")


def difference(one: Path, other: Path) -> float:
    """Return the largest difference of a weight matrix, as a share of its size."""
    path = "last/model.safetensors"
    first, second = (safetensors.torch.load_file(run / path) for run in (one, other))
    assert first.keys() == second.keys()
    return max(float((first[name] - second[name]).norm() / first[name].norm()) for name in first)


@pytest.mark.parametrize(
    ("size", "options"),
    [(4, CARRIED), (2, PHASES), (2, GRAMS), (2, SERIES)],
    ids=["carried", "phases", "n-grams and subwords", "series"],
)
def test_weights_are_those_of_one_process(project, size, options):
    fit(project, "one", *options)
    first, *_ = fit_together(project, "several", size, *options)
    assert difference(project / "one", project / "several") < 1e-5
    assert first.out == "several\n"
    assert "rank" not in first.err


def test_a_run_goes_on_with_another_number_of_processes(project):
    fit(project, "one", *CARRIED)
    steps = []
    for size, rank in ((3, 2), (2, 0)):
        stop = {rank: signals_within(UPDATE, 5, (1, signal.SIGTERM))}
        first, *_ = fit_together(project, "several", size, *CARRIED, prepare=stop, code=143)
        stopped = re.search(r"stopped by SIGTERM after training, update (\d+), saved", first.err)
        assert stopped, first.err
        steps.append(int(stopped[1]))
    assert steps == [5, 10]
    ended = fit(project, "several", *CARRIED)
    assert "processes is 1 here and was 3" in ended.err
    assert difference(project / "one", project / "several") < 1e-5


@pytest.mark.parametrize("kills", [2, pytest.param(100, marks=pytest.mark.slow)])
def test_a_killed_rank_leads_to_an_equal_run(project, whole, kills):
    draw, done = random.Random(kills), 0
    while done < kills:
        restarts, code = 0, [1]
        while any(code):
            rank = draw.randrange(2)
            # A process that is killed at its update n dies at a random step of the program within.
            steps = draw.randint(1, 400), signal.SIGKILL
            kill = {rank: signals_within(UPDATE, draw.randint(1, 12), steps)}
            prepare = kill if done < kills else None
            with launched(project, 2, *FIT, prepare=prepare, restarts=restarts) as ranks:
                code = [each.end() for each in ranks]
            if any(code):
                assert code[rank] == KILLED, [each.err for each in ranks]
                assert code[1 - rank] == 3, ranks[1 - rank].err
                said = "process is lost" in ranks[0].err
                assert said == (rank == 1)
                assert not ranks[1].err
                restarts, done = restarts + 1, done + 1
        assert fingerprint(project / "several") == whole
        shutil.rmtree(project / "several")


@pytest.mark.parametrize("signals", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_a_signal_to_one_or_all_loses_no_update(project, whole, signals):
    draw = random.Random(signals)
    for turn in range(signals):
        update = draw.randint(1, 14)
        stop = signals_within(UPDATE, update, (draw.randint(1, 99), signal.SIGTERM))
        asked = dict.fromkeys([0, 1] if turn % 2 else [turn // 2 % 2], stop)
        first, _ = fit_together(project, "several", 2, prepare=asked, code=143)
        stopped = re.search(r"stopped by SIGTERM after training, update (\d+), saved", first.err)
        assert stopped
        assert "torchrun --nproc-per-node 2 -m seqtrain fit " in first.err
        assert int(stopped[1]) in (update, update + 1)  # it may come after the sum
        fit_together(project, "several", 2)
        assert fingerprint(project / "several") == whole
        shutil.rmtree(project / "several")


def test_a_rank_that_stands_still_is_an_error(project):
    stop = {1: signals_within(UPDATE, 3, (1, signal.SIGSTOP))}
    wait = {"SEQTRAIN_TIMEOUT": "1"}
    with launched(project, 2, *FIT, prepare=stop, variables=wait) as ranks:
        assert ranks[0].end() == 3
        assert "process is lost" in ranks[0].err
        assert "--resume" in ranks[0].err


def let_weights_drift() -> None:
    """Change the weights of this process alone."""
    from seqtrain.engines.optimizer import Optimizer

    step = Optimizer.step
    Optimizer.step = lambda self, lr, *figures: step(  # type: ignore[method-assign]
        self, lr * 1.001, *figures
    )


def test_drifting_weights_are_noticed_after_the_epoch(project):
    first, _ = fit_together(project, "several", 2, prepare={1: let_weights_drift}, code=3)
    assert "epoch 1: weights differ" in first.err


def test_a_loss_that_is_not_finite_names_lines_and_updates_nothing(project):
    diverging = ("optimizer=sgd", "lr=1000", "weight_decay=1000", "schedule=constant")
    options = sets(*(f"training.{key}" for key in diverging))
    first, _ = fit_together(project, "several", 2, *options, code=3)
    lines = re.search(r"the (?:loss|gradient) isn't finite for train lines ([\d, ]+) \(", first.err)
    assert lines, first.err
    assert len(lines[1].split(",")) == 4  # of a batch, whichever rank had them


def let_config_differ(setting: str) -> None:
    """Let this process train with another setting."""
    sys.argv = [*sys.argv, "--set", setting]
    from seqtrain import config

    load = config.load_config
    config.load_config = lambda path, overrides: load(path, [*overrides, setting])  # type: ignore[assignment]


@pytest.mark.parametrize("setting", ["model.dropout=0.3", "data.lowercase=false"])
def test_another_config_is_refused(project, setting):
    differ = {1: partial(let_config_differ, setting)}
    first, _ = fit_together(project, "several", 2, prepare=differ, code=2)
    assert first.err.startswith("seqtrain: config: differs between rank 0 and rank 1")
    assert first.err.count("\n") == 1
    assert not (project / "several").exists()


def test_other_data_on_another_host_is_refused(project):
    shutil.copytree(project, project / "other")
    with (project / "other" / "train.tsv").open("a") as file:
        file.write("rise lift\tup\t\n")
    change = {1: partial(os.chdir, "other")}
    alone = {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    with launched(project, 2, *FIT, prepare=change, variables=alone) as ranks:
        assert [rank.end() for rank in ranks] == [2, 2]
    assert "data: encoded differently" in ranks[0].err
    assert not ranks[1].err
    assert not (project / "several").exists()


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("model.convolutions=[[8, 3, 1]]", "model.convolutions: their batch normalisation must"),
        ("training.class_weights={up: 1.0}", "training.class_weights: label 'down' has no weight"),
    ],
)
def test_what_the_first_process_refuses_is_said_once(project, option, said):
    with launched(project, 2, *FIT, "--set", option) as ranks:
        assert [rank.end() for rank in ranks] == [2, 3]
    assert f"seqtrain: {said}" in ranks[0].err
    assert not ranks[1].err
    assert not (project / "several").exists()


def torchrun(folder: Path, *options: str) -> subprocess.Popen[str]:
    """Start torch's launcher with options of its own, `-m seqtrain`, and options of `fit`."""
    variables = {"PYTHONPATH": str(Path(__file__).parents[2]), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", *options],
        cwd=folder,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def launching(folder: Path, processes: int, *options: str) -> Iterator[tuple[Any, list[int]]]:
    """Start a run by torchrun; yield the launcher and its processes' ids while these train."""
    train = ("-m", "seqtrain", *FIT, "--set", "training.max_epochs=5")
    launcher = torchrun(folder, f"--nproc-per-node={processes}", "--standalone", *options, *train)
    with launcher:
        while launcher.poll() is None and not (folder / "several" / "previous").exists():
            time.sleep(0.01)
        children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children")
        if not children.exists():
            launcher.kill()
            pytest.skip("needs /proc")
        yield launcher, sorted(map(int, children.read_text().split()))


@pytest.mark.slow
def test_lost_ranks_are_started_again_and_the_run_resumes(project):
    fit_together(project, "whole", 2, *sets("training.max_epochs=5"))
    with launching(project, 2, "--max-restarts=1") as (launcher, ranks):
        os.kill(ranks[-1], signal.SIGKILL)
        out, err = launcher.communicate(timeout=PATIENCE)
    assert launcher.returncode == 0, err
    assert out == "several\n"
    assert fingerprint(project / "several") == fingerprint(project / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(5))
def test_sigterm_to_the_launcher_stops_all(project, turn):
    with launching(project, 2) as (launcher, _):
        time.sleep(0.1 * turn)
        launcher.send_signal(signal.SIGTERM)
        out, err = launcher.communicate(timeout=PATIENCE)
    assert launcher.returncode != 0
    assert out == ""
    assert err.count("stopped by SIGTERM after training, update") == 1


@pytest.mark.slow
def test_two_launchers_train_together(project):
    """As on two hosts, and no --run-dir is needed unless processes may be started again."""
    endpoint = f"--rdzv-endpoint=localhost:{free_port()}"
    options = ["--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d", endpoint]
    train = ["-m", "seqtrain", "fit", "c.yaml", "--quiet"]
    with torchrun(project, *options, *train) as one, torchrun(project, *options, *train) as other:
        errors = [each.communicate(timeout=PATIENCE)[1] for each in (one, other)]
        assert [one.returncode, other.returncode] == [0, 0], errors
    (run,) = (project / "runs").iterdir()
    fit(project, "one")
    assert difference(project / "one", run) < 1e-5


def test_the_environment_says_which_process_this_is():
    assert launched_processes({}) == SINGLE
    found = launched_processes({"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1"})
    assert (found.rank, found.size, found.local_rank, found.local_size) == (3, 4, 1, 4)
    for wrong in (
        {"RANK": "4", "WORLD_SIZE": "4"},
        {"RANK": "x"},
        {"WORLD_SIZE": "-1"},
        {"LOCAL_RANK": "2"},
        {"WORLD_SIZE": "9" * 99},
    ):
        with pytest.raises(ConfigError, match=r"RANK|WORLD_SIZE"):
            launched_processes(wrong)


def test_only_a_launchers_own_run_is_begun_again(project):
    """A restart needs the run's directory, and replaces no run of somebody else."""
    may = {"TORCHELASTIC_RUN_ID": "x", "TORCHELASTIC_MAX_RESTARTS": "1"}
    running = ended(project, "fit", "c.yaml", prepare=partial(take_place, may, None), code=2)
    assert "--run-dir: missing" in running.err
    fit(project, "several")
    before = fingerprint(project / "several")
    again = partial(take_place, {**may, "TORCHELASTIC_RESTART_COUNT": "1"}, None)
    running = ended(project, *FIT, prepare=again, code=2)
    assert "isn't empty" in running.err
    assert fingerprint(project / "several") == before
