"""The host waits for the device at most once per update, and one update later."""

from itertools import pairwise
from typing import Any

import pytest
import torch

from seqtrain.api.fit import fit
from seqtrain.config import load_config
from seqtrain.errors import RunError
from seqtrain.sequences.batch import collate
from seqtrain.training.events import UpdateEvent
from tests.cuda.test_models import make_learner, make_store

PARTS = [
    ((), 110),
    (("model.ngrams=[1, 2]", "model.subwords=[3, 5]", "model.embedding_dropout=0.3"), 150),
    (("model.pooling=[last, attention]", "model.bidirectional=true"), 190),
    (("training.optimizer=sgd", "model.initial_state=random",
      "model.ngrams=[1, 2]"), 130),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "most_launches"), PARTS)
def test_waits_and_launches_of_an_update(parts, most_launches, project, fake):
    """Counted between the events of two updates of an epoch."""
    counts: list[tuple[int, int]] = []

    def listener(event: Any) -> None:
        if isinstance(event, UpdateEvent) and event.epoch == 2:
            counts.append((fake.waits(), fake.launches()))

    fit(load_config("c.yaml", [*parts, "training.device=cuda"]), run_dir="r", listener=listener)
    between = list(pairwise(counts))[:-1]
    assert len(between) == 2
    for (waits, launches), (later_waits, later_launches) in between:
        assert later_waits - waits <= 1
        assert later_launches - launches <= most_launches


@pytest.mark.parametrize("parts", [parts for parts, _ in PARTS])
def test_nothing_but_the_figures_is_waited_for(parts, project, on_cuda):
    """torch raises an error if an operation makes the host wait."""

    def listener(event: Any) -> None:
        if isinstance(event, UpdateEvent):
            inside = 1 <= event.batch < event.num_batches - 1
            torch.cuda.set_sync_debug_mode("error" if inside else "default")

    try:
        fit(load_config("c.yaml", [*parts, "training.device=cuda"]), run_dir="r", listener=listener)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_an_update_after_one_that_failed_changes_nothing(device, on_cuda):
    """It was queued before the host could know."""
    learner = make_learner(device, {})
    network, objective = learner.objective.model, learner.objective
    objective.class_weights = torch.tensor([torch.nan, 1, 1, 1], device=device)
    rows = [[row for row in range(64) if (row % 4 == 0) == fails] for fails in (True, False)]
    before = {name: weight.clone() for name, weight in network.state_dict().items()}
    store = make_store(64)
    for some in rows:
        learner.queue_update(collate(store.__getitems__(some)).to(device), 0.1)
    with pytest.raises(RunError, match="step 1: "):
        learner.finish_update()
    for name, weight in network.state_dict().items():
        assert torch.equal(weight, before[name]), name
