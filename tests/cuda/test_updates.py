"""The host waits for the device at most twice per update."""

from itertools import count, pairwise
from typing import Any

import pytest
import torch

from seqtrain.api.compare import rate_of_turn
from seqtrain.api.fit import fit
from seqtrain.config import load_config
from seqtrain.training.events import UpdateEvent

PARTS = [
    ((), 140),
    (("model.subwords=[3, 5]", "model.embedding_dropout=0.3"), 170),
    (("model.pooling=[last, attention]", "model.bidirectional=true"), 220),
    (("training.optimizer=sgd", "model.initial_state=random"), 130),
]


def test_a_turn_of_compare_ends_when_the_device_is_idle(fake):
    """Otherwise kernels of the last update would be missed."""
    before, device = fake.waits(), torch.device("cuda")
    rate_of_turn((len(torch.ones(3, device=device) + 1) for _ in count()), device)
    assert fake.waits() - before == 1


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
        assert later_waits - waits <= 2
        assert later_launches - launches <= most_launches
