"""Random tasks with a cache that is damaged, full, raced for or stale: data as without it."""

import os
import random
import shutil
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from seqtrain.config import Config, config_from_mapping
from seqtrain.errors import DataError
from seqtrain.sequences import cache
from seqtrain.sequences.dataset import PreparedData, prepare
from tests.helpers.examples import seeds
from tests.helpers.program import FORKS
from tests.helpers.tasks import Task, random_task
from tests.helpers.tiny import file_size_limit
from tests.sequences.test_cache import same

FOLDER = Path("cache")
CHANGES: dict[str, list[Any]] = {
    "seed": [0, 1],
    "data.validation": [0.3, 0.4],
    "data.max_length": [None, 2],
    "data.min_count": [1, 2],
    "data.empty": ["error", "unk"],
    "training.lr": [0.1, 0.2],
}


def random_config(task: Task, draw: random.Random) -> Config:
    """Return a config of the task's files with other settings, most of which change the data."""
    data: dict[str, Any] = {name: f"{name}.{task.ending}" for name in task.splits} | task.data
    sections: dict[str, Any] = {"data": data, "seed": 0, "training": {}}
    for key, values in CHANGES.items():
        section, _, name = key.rpartition(".")
        is_fixed = key == "data.validation" and "validation" in task.splits
        if not is_fixed and (key != "data.min_count" or task.kind in ("text", "tokens")):
            (sections[section] if section else sections)[name] = draw.choice(values)
    if task.kind in ("text", "tokens") and draw.random() < 0.5:
        sections["model"] = {"ngrams": [1, 2], "max_ngrams": draw.choice([5, 50])}
    return config_from_mapping(sections)


def change_file(task: Task, draw: random.Random) -> None:
    """Write a file anew: with other rows, the same ones, or the same ones at another time."""
    name = draw.choice([*task.splits])
    path = Path(f"{name}.{task.ending}")
    kind = draw.choice(["rows", "bytes", "time"])
    if kind == "rows":
        draw.shuffle(task.splits[name])
        task.write(Path())
    elif kind == "bytes":
        path.write_bytes(path.read_bytes())
    else:
        os.utime(path, (1, 1))


def damage(draw: random.Random) -> None:
    """Change a file of an entry, take one away, or exchange it with that of another entry."""
    files = [path for path in FOLDER.rglob("*") if path.is_file()]
    if not files:
        return
    path, other = draw.choice(files), draw.choice(files)
    content, kind = path.read_bytes(), draw.choice(["flip", "cut", "remove", "other", "folder"])
    if kind == "flip" and content:
        place = draw.randrange(len(content))
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
    elif kind == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif kind == "other":
        path.write_bytes(other.read_bytes())
    elif kind == "folder":
        path.unlink()
        path.mkdir()
    else:
        path.unlink()


def block(draw: random.Random) -> None:
    """Put a file in the place of the cache's folder, or of an entry."""
    entries = [*FOLDER.iterdir()] if FOLDER.is_dir() else []
    path = draw.choice([FOLDER, *entries])
    if path.is_dir():
        shutil.rmtree(path)
    path.write_text("")


def prepared(config: Config, folder: Path | None, **options: Any) -> PreparedData | str:
    """Return the data of a config, or the message that refuses it."""
    try:
        return prepare(config, cache_folder=folder, **options)
    except DataError as error:
        return str(error)


def are_equal(one: PreparedData | str, other: PreparedData | str) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return same(one, other)


@pytest.mark.parametrize("seed", seeds(2))
def test_data_are_those_of_the_files_whatever_happened_to_the_cache(seed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw, task, num_cached = random.Random(seed), random_task(seed), 0
    task.write(tmp_path)
    configs = [random_config(task, draw) for _ in range(2)]
    for _ in range(20):
        event = draw.random()
        if event < 0.15:
            change_file(task, draw)
        elif event < 0.35:
            damage(draw)
        elif event < 0.4:
            block(draw)
        elif event < 0.45:
            FOLDER.unlink() if FOLDER.is_file() else shutil.rmtree(FOLDER, ignore_errors=True)
        monkeypatch.setattr(cache, "MOST_BYTES", draw.choice([2**30, 2**30, 60_000, 100]))
        config, before = draw.choice(configs), sorted(FOLDER.rglob("*"))
        fresh = prepared(config, None)
        assert sorted(FOLDER.rglob("*")) == before
        if draw.random() < 0.15:
            with file_size_limit(draw.choice([0, 200, 4000])):
                found = prepared(config, FOLDER)
        else:
            found = prepared(config, FOLDER, read_only=draw.random() < 0.1)
        assert are_equal(found, fresh), (event, config)
        num_cached += isinstance(found, PreparedData) and found.from_cache
    if not num_cached and isinstance(fresh, PreparedData):
        monkeypatch.setattr(cache, "MOST_BYTES", 2**30)
        assert prepare(config, cache_folder=Path("other")).entry is not None
        assert prepare(config, cache_folder=Path("other")).from_cache


def prepare_often(folder: str, seed: int, number: int, told: Connection) -> None:
    """Prepare configs at random in a small cache that others use, too; tell what was wrong."""
    os.chdir(folder)
    draw, task = random.Random(seed), random_task(seed)
    configs = [random_config(task, draw) for _ in range(4)]
    fresh = [prepared(config, None) for config in configs]
    draw = random.Random(f"{seed} {number}")
    cache.MOST_BYTES = draw.choice([2**30, 100_000])
    wrong, num_cached = 0, 0
    for _ in range(25):
        which = draw.randrange(len(configs))
        found = prepared(configs[which], FOLDER)
        wrong += not are_equal(found, fresh[which])
        num_cached += isinstance(found, PreparedData) and found.from_cache
        if draw.random() < 0.1:
            shutil.rmtree(FOLDER, ignore_errors=True)
    told.send((wrong, num_cached))


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(20))
def test_several_processes_share_a_cache(seed, tmp_path):
    random_task(seed).write(tmp_path)
    pipes = [FORKS.Pipe() for _ in range(3)]
    processes = [
        FORKS.Process(target=prepare_often, args=(str(tmp_path), seed, number, theirs))
        for number, (_, theirs) in enumerate(pipes)
    ]
    for process, (_, theirs) in zip(processes, pipes, strict=True):
        process.start()
        theirs.close()
    found = [ours.recv() for ours, _ in pipes]
    for process in processes:
        process.join()
    assert sum(wrong for wrong, _ in found) == 0, found
