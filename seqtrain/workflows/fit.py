"""Training a classifier: config → data → model → loop → run directory."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from seqtrain.config import Config, config_from_mapping, load_config
from seqtrain.data.cache import default_folder
from seqtrain.data.preparation import check_files, prepare
from seqtrain.data.summary import padding_shares, summarize, warnings
from seqtrain.runs import run_directory
from seqtrain.training.devices import select_device
from seqtrain.workflows.events import DataEvent, Listener, Run
from seqtrain.workflows.memory import check_memory
from seqtrain.workflows.session import Session


def fit(
    config: Config | Mapping[str, Any] | str | Path,
    *,
    run_dir: str | Path | None = None,
    device: str | None = None,
    resume: bool = False,
    force: bool = False,
    cache: bool = True,
    name: str | None = None,
    beside: Path | None = None,
    listener: Listener = lambda event: None,
) -> Run:
    """Train a classifier and write its run directory.

    Args:
        config: a Config, a mapping of its sections, or the path of a YAML file.
        run_dir: where; None: runs/<config name>-<time>.
        device: in place of training.device.
        resume: go on from run_dir's last checkpoint (None: the newest run's).
        force: replace an earlier run in run_dir.
        cache: keep encoded data between runs.
        name: first part of the run's default name; None: the YAML file's, or "run".
        beside: folder of the YAML file, for the message where a data file is missing.
        listener: is called with every event.

    Raises:
        ConfigError, DataError, CheckpointError: what was given is wrong; nothing was written.
        RunError: the run failed; what was saved stays valid.
        Interrupted: a signal stopped it; a checkpoint is saved.
    """
    if isinstance(config, str | Path):
        name, beside = name or Path(config).stem, beside or Path(config).parent
        config = load_config(config)
    elif not isinstance(config, Config):
        config = config_from_mapping(config)
    if device is not None:
        training = config.training.model_copy(update={"device": device})
        config = config.model_copy(update={"training": training})
    chosen = select_device(config.training.device)
    if resume:
        run = run_directory.find(Path(run_dir) if run_dir else None)
    elif run_dir is not None:
        run_directory.check_free(Path(run_dir), force=force)
    check_files(config.data, beside)
    began = time.perf_counter()
    data = prepare(config, cache_folder=default_folder() if cache else None)
    check_memory(config, data)
    summaries = summarize(data)
    listener(
        DataEvent(
            data,
            summaries,
            padding_shares(data, config.batching, config.seed),
            warnings(data, summaries),
            time.perf_counter() - began,
        )
    )
    with torch.random.fork_rng(devices=[chosen] if chosen.type == "cuda" else []):
        torch.manual_seed(config.seed)
        session = Session(config, data, chosen, listener)
        if resume:
            session.resume(run)
        else:
            session.begin(Path(run_dir) if run_dir else None, name or "run", force=force)
        return session.train()
