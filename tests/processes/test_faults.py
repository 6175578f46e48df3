"""What several processes do when one fails, differs, stands still or is killed."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import time
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest
from torch.distributed.distributed_c10d import PrefixStore

from seqtrain.errors import DataError
from seqtrain.processes.place import cores
from tests.helpers.program import KILLED, fingerprint, signals_within
from tests.helpers.together import fit_together, launched, take_place

FIT = ("fit", "c.yaml", "--run-dir", "several", "--quiet")


@pytest.mark.parametrize("kills", [3, pytest.param(100, marks=pytest.mark.slow)])
def test_a_killed_rank_leads_to_an_equal_run(project: Path, kills: int) -> None:
    fit_together(project, "whole", 2)
    whole, draw, done = fingerprint(project / "whole"), random.Random(kills), 0
    while done < kills:
        restarts, code = 0, [1]
        while any(code):
            rank = draw.randrange(2)
            # A process that is killed at its update n dies at a random step of the program within.
            kill = signals_within(
                "_shared_gradient", draw.randint(1, 12), (draw.randint(1, 400), signal.SIGKILL)
            )
            prepare = {rank: kill} if done < kills else None
            with launched(project, 2, *FIT, prepare=prepare, restarts=restarts) as ranks:
                code = [each.end() for each in ranks]
            if any(code):
                assert code[rank] == KILLED, [each.err for each in ranks]
                assert code[1 - rank] == 3, ranks[1 - rank].err
                assert f"lost: rank {rank}" in ranks[1 - rank].err
                restarts, done = restarts + 1, done + 1
        assert fingerprint(project / "several") == whole
        shutil.rmtree(project / "several")


@pytest.mark.parametrize("signals", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_sigterm_to_one_or_all_loses_no_update(project: Path, signals: int) -> None:
    draw, options = random.Random(signals), ("--set", "training.checkpoint_every=null")
    fit_together(project, "whole", 2, *options)
    whole = fingerprint(project / "whole")
    for turn in range(signals):
        update = draw.randint(1, 14)
        stop = signals_within("_shared_gradient", update, (draw.randint(1, 99), signal.SIGTERM))
        asked = dict.fromkeys([0, 1] if turn % 2 else [turn // 2 % 2], stop)
        first, _ = fit_together(project, "several", 2, *options, prepare=asked, code=143)
        stopped = re.search(r"stopped by SIGTERM after step (\d+), saved", first.err)
        assert stopped
        assert first.err.rstrip().endswith(" --nproc-per-node 2")
        assert int(stopped[1]) in (update, update + 1)  # it may come when the sum was told
        state = (project / "several" / "last" / "training_state.json").read_text()
        assert f'"updates": {stopped[1]},' in state
        fit_together(project, "several", 2, *options)
        assert fingerprint(project / "several") == whole
        shutil.rmtree(project / "several")


def test_a_rank_that_stands_still_is_named(project: Path) -> None:
    stop = {1: signals_within("_shared_gradient", 3, (1, signal.SIGSTOP))}
    patience = {"SEQTRAIN_TIMEOUT": "1"}
    with launched(project, 2, *FIT, prepare=stop, variables=patience) as ranks:
        assert ranks[0].end() == 3
        assert re.search(r"lost: rank 1 on \S+; .* go on with --resume", ranks[0].err)


def let_scoring_take_long() -> None:
    """Let this process score for longer than others wait for an update."""
    from seqtrain.evaluation import logits

    compute = logits.logits_of_batches

    def slowly(*arguments: object) -> object:
        time.sleep(9)
        return compute(*arguments)  # type: ignore[arg-type]

    logits.logits_of_batches = slowly  # type: ignore[assignment]


@pytest.mark.slow
def test_others_wait_while_the_first_scores_carried_states_alone(project: Path) -> None:
    heading, *lines = (project / "train.tsv").read_text().splitlines()
    told = [f"{heading}\tchat", *(f"{line}\tc{row % 5}" for row, line in enumerate(lines))]
    (project / "train.tsv").write_text("\n".join(told))
    (project / "said.tsv").write_text("\n".join(told[:20]))
    keys = ("data.group=chat", "data.validation=said.tsv", "data.test=null")
    options = ("model.initial_state=carried", "training.max_epochs=1", *keys)
    more = [word for key in options for word in ("--set", key)]
    patience, slow = {"SEQTRAIN_TIMEOUT": "6"}, {0: let_scoring_take_long}
    with launched(project, 2, *FIT, *more, prepare=slow, variables=patience) as ranks:
        assert [rank.end() for rank in ranks] == [0, 0], [rank.err for rank in ranks]


def let_weights_drift() -> None:
    """Change the weights of this process alone."""
    from seqtrain.training.optimizer import Optimizer

    step = Optimizer.step
    Optimizer.step = lambda self, *, lr: step(self, lr=lr * 1.001)  # type: ignore[method-assign]


def test_drifting_weights_are_noticed_after_the_epoch(project: Path) -> None:
    ranks = fit_together(project, "several", 2, prepare={1: let_weights_drift}, code=3)
    assert "epoch 1: the weights of rank 1 on" in ranks[0].err
    assert not ranks[1].err


def test_a_loss_that_is_not_finite_names_lines_and_updates_nothing(project: Path) -> None:
    diverging = ("optimizer=sgd", "lr=1000", "weight_decay=1000", "schedule=constant")
    options = [word for key in diverging for word in ("--set", f"training.{key}")]
    first, other = fit_together(project, "several", 2, *options, code=3)
    lines = re.search(r"the (?:loss|gradient) isn't finite for train lines ([\d, ]+) \(", first.err)
    assert lines, first.err
    assert len(lines[1].split(",")) == 4  # of a batch, whichever rank had them
    assert not other.err


def test_other_data_on_another_host_is_refused(project: Path) -> None:
    (project / "other").mkdir()
    for path in project.glob("*.*"):
        shutil.copy(path, project / "other")
    with (project / "other" / "train.tsv").open("a") as file:
        file.write("rise lift\tup\n")
    change = {1: partial(os.chdir, "other")}
    with launched(project, 2, *FIT, prepare=change, variables={"LOCAL_RANK": "0"}) as ranks:
        assert [rank.end() for rank in ranks] == [2, 2]
    assert re.search(r"rank 1 on \S+: train.tsv: SHA-256 .* rank 0 reads", ranks[0].err)
    assert not ranks[1].err
    assert not (project / "several").exists()


def forbid_reading() -> None:
    """Let this process fail where it reads data itself."""
    from seqtrain.api import run_data

    def refuse(*config: object, **options: object) -> NoReturn:
        raise DataError("it was read here too")

    run_data.prepare = refuse


def test_one_process_of_a_host_reads_the_data(project: Path) -> None:
    fit_together(project, "whole", 2)
    forbidden = {1: forbid_reading}
    fit_together(project, "several", 2, "--no-cache", prepare=forbidden)
    assert fingerprint(project / "several") == fingerprint(project / "whole")


@pytest.mark.skipif(cores() < 2, reason="needs two cores")
def test_what_another_rank_warns_of_names_it(project: Path) -> None:
    alone = {1: partial(take_place, {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}, None)}
    with launched(project, 2, *FIT, prepare=alone, variables={"OMP_NUM_THREADS": "1"}) as ranks:
        assert [rank.end() for rank in ranks] == [0, 0], ranks[0].err
    assert re.search(r"warning: rank 1 on \S+: \d+ threads in each process", ranks[0].err)
    assert not ranks[1].err


def look_late() -> None:
    check = PrefixStore.check
    PrefixStore.check = lambda store, keys: time.sleep(2) or check(store, keys)  # type: ignore[method-assign,func-returns-value]


def test_what_was_given_wrong_is_told_once_also_to_a_late_reader(project: Path) -> None:
    (project / "test.tsv").unlink()
    with launched(project, 2, *FIT, prepare={1: look_late}) as ranks:
        assert [rank.end() for rank in ranks] == [2, 2]
    assert "data.test: no file 'test.tsv'" in ranks[0].err
    assert "rank" not in ranks[0].err
    assert not ranks[1].err
