"""Damaged and forged model folders: refused in words, or read as what they say; never worse."""

import json
import random
import shutil
import struct
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from seqtrain.config.schema import TrainingConfig
from seqtrain.engines.optimizer import Optimizer
from seqtrain.errors import CheckpointError
from seqtrain.files.writing import MANIFEST, read_folder, write_folder
from seqtrain.runs.checkpoint import Checkpoint, read_checkpoint
from seqtrain.training.progress import checked_progress
from tests.helpers.watched import watch

MEMORY = 256 * 2**20
WEIRD = [
    None, True, -1, 0, 2**31, 10**30, 1e308, "", "../../etc/passwd", "os.system", [], {}, [[]],
    {"a": 1}, "\x00", "é" * 99, [None], 0.5, "nan", 10**400, -(10**400), -(2**63), -0.5,
]  # fmt: skip
Mutation = Callable[[bytes, random.Random], bytes]


def flip_bit(content: bytes, draw: random.Random) -> bytes:
    place = draw.randrange(len(content))
    return content[:place] + bytes([content[place] ^ 1 << draw.randrange(8)]) + content[place + 1 :]


def cut(content: bytes, draw: random.Random) -> bytes:
    return content[: draw.randrange(len(content))]


def zero(content: bytes, draw: random.Random) -> bytes:
    start = draw.randrange(len(content))
    block = content[start : start + draw.choice((1, 16, 512))]
    return content[:start] + bytes(len(block)) + content[start + len(block) :]


def splice(content: bytes, draw: random.Random) -> bytes:
    start, end = sorted(draw.choices(range(len(content) + 1), k=2))
    place = draw.randrange(len(content) + 1)
    return content[:place] + content[start:end] + content[place:]


def forge(content: bytes, draw: random.Random) -> bytes:
    """Change one value of the JSON that the file is, or of its safetensors header."""
    if content.startswith(b"{"):
        return json.dumps(_changed(json.loads(content), draw)).encode()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.dumps(_changed(json.loads(content[8 : 8 + length]), draw)).encode()
    size = draw.choice((len(header), len(header), len(header), 2**40, 2**63, 0))
    return struct.pack("<Q", size) + header + content[8 + length :]


def _changed(value: Any, draw: random.Random) -> Any:
    """Put something weird in the place of one part, or drop or double it."""
    if not isinstance(value, dict | list) or not value or draw.random() < 0.1:
        return draw.choice(WEIRD)
    key = draw.choice(list(value) if isinstance(value, dict) else range(len(value)))
    changed = value.copy()
    action = draw.random()
    if action < 0.8:
        changed[key] = _changed(value[key], draw)
    elif action < 0.9:
        del changed[key]
    elif isinstance(changed, dict):
        changed[draw.choice(("__class__", "_target_", "module", "x"))] = value[key]
    else:
        changed.append(value[key])
    return changed


MUTATIONS: list[Mutation] = [flip_bit, cut, zero, splice, forge]


def use(folder: Path) -> Checkpoint:
    """Read a checkpoint as a resumed run does, and classify with its model."""
    checkpoint = read_folder(folder, read_checkpoint)
    network, prefix = checkpoint.model.network, "optimizer."
    optimizer = Optimizer(network, network.set_sparse_gradients(True), TrainingConfig())
    states = {n.removeprefix(prefix): t for n, t in checkpoint.tensors.items() if prefix in n}
    try:
        updates = checked_progress(checkpoint.progress).updates
        optimizer.load_state_dict(states, complete=updates > 0)
    except ValueError as error:
        raise CheckpointError(str(error)) from None
    return checkpoint


def same(first: Checkpoint, second: Checkpoint) -> bool:
    states = [c.model.network.state_dict() | c.tensors for c in (first, second)]
    return (
        states[0].keys() == states[1].keys()
        and all(torch.equal(states[0][name], states[1][name]) for name in states[0])
        and first.model.preprocessing == second.model.preprocessing
        and (first.progress, first.metrics_length) == (second.progress, second.metrics_length)
    )


def mutate(folder: Path, count: int) -> Counter[str]:
    """Read mutated copies of a checkpoint; count what came of them."""
    files = {path.name: path.read_bytes() for path in (folder / "r" / "last").iterdir()}
    original, target = use(folder / "r" / "last"), folder / "mutated"
    draw, outcomes = random.Random(count), Counter[str]()
    for turn in range(count):
        name, mutation = draw.choice(sorted(files)), draw.choice(MUTATIONS)
        changed = {**files, name: mutation(files[name], draw)}
        redigested = turn % 2 == 0 and name != MANIFEST
        if redigested:
            del changed[MANIFEST]
            write_folder(target, changed)
        else:
            target.mkdir(exist_ok=True)
            for file, content in changed.items():
                (target / file).write_bytes(content)
        kind = "digest recomputed" if redigested else "digest kept"
        try:
            accepted = use(target)
        except CheckpointError as error:
            lines = str(error).count("\n") + 1
            outcomes[f"{kind}: {'refused' if lines == 1 else 'refused at length'}"] += 1
            continue
        harmless = same(accepted, original)
        outcomes[f"{kind}: {'read as before' if harmless else 'read as forged'}"] += 1
    return outcomes


@pytest.mark.parametrize("count", [200, pytest.param(20_000, marks=pytest.mark.slow)])
def test_mutated_checkpoints(finished, disk, count):
    shutil.copytree(finished / "r", disk / "r")
    outcomes, offences, memory = watch(disk, partial(mutate, count=count))
    assert sum(outcomes.values()) == count
    assert offences == []
    assert memory < MEMORY
    assert not any("forged" in kind for kind in outcomes if kind.startswith("digest kept"))
    assert not any("at length" in kind for kind in outcomes)
    assert outcomes["digest kept: refused"] > count * 0.45
    assert outcomes["digest recomputed: refused"] > count * 0.2
