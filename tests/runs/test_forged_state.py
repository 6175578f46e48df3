"""A state of training that no run leaves is refused in one line, digests and all."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor

from seqtrain.api.fit import fit
from seqtrain.config import load_config
from seqtrain.errors import Interrupted
from seqtrain.files.writing import MANIFEST, write_folder
from seqtrain.runs.checkpoint import STATE, STATE_TENSORS
from tests.helpers.tiny import rows, stopping_after, write_jsonl

Tensors = dict[str, Tensor]
Forge = Callable[[Tensors], object]
HEAD, MOMENT = "pretraining.softmax.head.weight", "optimizer.native.0.exp_avg"
GROUPS, STATES = "carried.groups", "carried.states"


def changed(name: str, change: Callable[[Tensor], Tensor]) -> Forge:
    return lambda tensors: tensors.update({name: change(tensors[name])})


def without(name: str) -> Forge:
    return lambda tensors: tensors.pop(name)


FORGED: dict[str, list[Forge | dict[str, Any]]] = {
    "pretraining.objective=language_model": [
        without(HEAD),
        *(changed(HEAD, how) for how in (lambda x: x[1:].contiguous(), Tensor.double)),
        changed(HEAD, lambda weight: weight * math.nan),
        changed(MOMENT, lambda moment: torch.zeros(3)),
        {"phase": 1},
        {"examples": 0},
    ],
    "training.max_epochs=2": [
        *(without(MOMENT), Tensors.clear),
        changed(MOMENT, lambda moment: moment.T.contiguous()),
        changed("optimizer.native.0.step", torch.zeros_like),
        changed("optimizer.native.1.exp_avg_sq", lambda moment: moment * math.nan),
        lambda tensors: tensors.update({"optimizer.native.99.step": torch.ones(())}),
        *({"updates": value} for value in ("4", -1, 10**400, True)),
        *({"loss_sum": 1e308}, {"batches": 99}, {"module": "os"}, {"phase": 1}),
    ],
    "model.initial_state=carried data.group=g": [
        without(STATES),
        lambda tensors: tensors.update({x: tensors[x][1:].clone() for x in (GROUPS, STATES)}),
        *(changed(GROUPS, how) for how in (torch.zeros_like, lambda groups: groups - 99)),
        *(changed(STATES, how) for how in (lambda states: states * math.nan, Tensor.double)),
    ],
}


@pytest.mark.parametrize("settings", FORGED)
def test_it_is_refused(settings, project, cli):
    talks = [{"text": x, "label": y, "g": f"g{i % 9}"} for i, (x, y) in enumerate(rows(40, seed=1))]
    write_jsonl(project / "train.jsonl", talks)
    keys = ["data.train=train.jsonl", "data.validation=null", "data.test=null", *settings.split()]
    with pytest.raises(Interrupted):
        fit(load_config("c.yaml", keys), run_dir="r", listener=stopping_after(2))
    files = {path.name: path.read_bytes() for path in Path("r/last").iterdir()}
    del files[MANIFEST]
    for forge in FORGED[settings]:
        tensors = safetensors.torch.load(files[STATE_TENSORS])
        state = json.loads(files[STATE])
        state["progress"].update(forge) if isinstance(forge, dict) else forge(tensors)
        forged = {STATE: json.dumps(state).encode(), STATE_TENSORS: safetensors.torch.save(tensors)}
        write_folder(Path("r/last"), files | forged)
        problems = cli("fit", "r/config.yaml", "--run-dir", "r", "--resume", "-q", code=2).problems
        assert len([line for line in problems if line.startswith("seqtrain: ")]) == 1, problems
