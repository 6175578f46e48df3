"""Writing a run directory during training: metrics, checkpoints, and the best model."""

import math
import time
from collections.abc import Mapping
from dataclasses import asdict
from shlex import quote
from typing import Any

import torch
from torch import Tensor

from seqtrain.config import render_config
from seqtrain.engines.choice import choose_engine
from seqtrain.errors import Interrupted, RunError, either, parameter
from seqtrain.evaluation.scores import missing_class_warnings, single_class_warnings
from seqtrain.files.writing import remove, remove_strays, to_json, write_file, write_folder
from seqtrain.metrics import perplexity
from seqtrain.runs.checkpoint import Checkpoint, checkpoint_files
from seqtrain.runs.destination import check_replaceable, remove_earlier
from seqtrain.runs.memory import peak_memory
from seqtrain.runs.model_folder import ENCODER, Model, model_files
from seqtrain.runs.run_directory import CONFIG, ENVIRONMENT, FOLDERS, TEST, VALIDATION, RunDirectory
from seqtrain.runs.starting_point import ResumePoint
from seqtrain.training.advice import nothing_left
from seqtrain.training.events import (
    CalibrationEnd,
    EpochEvent,
    PhaseEnd,
    TrainingEvent,
    UpdateEvent,
)
from seqtrain.training.trainer import Trainer

UPDATES_PER_LINE = 50
"""Updates between two "step" lines of metrics.jsonl."""
CHECKPOINT_INTERVAL = 30.0
"""Age of a checkpoint, in seconds, from which the end of an epoch writes a new one."""


class RunWriter:
    """Write the files of a run from the events of its training.

    Only rank 0 creates a RunWriter. It writes a checkpoint to ``last/``

    - when a new run starts, and when pretraining, training or a refit ends,
    - after an epoch, if the previous checkpoint is older than `CHECKPOINT_INTERVAL`,
    - as often as ``training.checkpoint_every`` asks for,
    - when a signal stops the run, if anything changed since the previous checkpoint.

    If an epoch was the best since the previous checkpoint, the best model is written to ``best/``
    right before the checkpoint. A model with a weight that isn't finite is never written.

    Args:
        run: Run directory. It must be locked by this process.
        session: The run in progress. It is up to date after each event.
        point: The checkpoint that the run resumes from, or None for a new run.

    Attributes:
        run, session: The arguments of these names.
        engine: Dict with the name of the engine of the recurrence ("engine") and the reason for its
            choice ("engine_reason").
    """

    def __init__(
        self, run: RunDirectory, session: Trainer, point: ResumePoint | None = None
    ) -> None:
        self.run = run
        self.session = session
        engine = choose_engine(session.config.model, session.device)
        self.engine = {"engine": engine.name, "engine_reason": engine.reason}
        if point is None:
            self._metrics_length = 0
        else:
            self._metrics_length = point.checkpoint.metrics_length
        self._last_is_whole = point is None or point.folder == run.last
        self._saved_at = time.monotonic()
        self._is_saved = True
        self._saved_best = session.best

    def start(self, environment: Mapping[str, Any], *, force: bool) -> None:
        """Write the first files of a new run.

        The config is written last: a directory with a config can always be resumed.

        Args:
            environment: Content of environment.json.
            force: True to remove earlier runs in the directory.

        Raises:
            ConfigError: If the directory holds another run and `force` is False, or if it holds
                other files that mustn't be replaced.
            RunError: If a file can't be written.
        """
        check_replaceable(self.run.path, parameter("run_dir"), force=force)
        remove_earlier(self.run.path)
        write_file(self.run.path / ENVIRONMENT, to_json(environment))
        self.save_checkpoint()
        self._write_config()

    def resume(self) -> None:
        """Restore the directory to its state at the checkpoint that the run resumes from.

        Metrics that were logged after the checkpoint are removed. If epochs are left to train, the
        scores on test are also removed, and the changed config is written.

        Raises:
            CheckpointError: If metrics.jsonl is shorter than it was at the checkpoint.
            RunError: If a file can't be written.
        """
        remove_strays(self.run.path, FOLDERS)
        self.run.cut_metrics(self._metrics_length)
        if not nothing_left(self.session):
            remove(self.run.path / TEST)
            self._write_config()

    def record(self, event: TrainingEvent) -> None:
        """Write metrics, checkpoints and models at an event of training.

        - Each epoch, and each 50th update of training or a refit, is logged in metrics.jsonl.
        - Checkpoints are written as the class describes.
        - The end of pretraining writes ``pretrained/``.
        - The end of calibration writes the calibrated model to ``best/``, and its scores on
          validation to ``validation.json``.

        Raises:
            RunError: If a weight isn't finite, or a file can't be written.
        """
        match event:
            case UpdateEvent():
                self._is_saved = False
                if event.update % UPDATES_PER_LINE == 0 and event.phase != "pretraining":
                    self._log(metrics_line(event))
                if self.is_due(event.update):
                    self.save_checkpoint()
            case EpochEvent():
                self._is_saved = False
                self._log(
                    metrics_line(event) | ({} if event.phase == "pretraining" else self.engine)
                )
                if self._checkpoint_age() >= CHECKPOINT_INTERVAL:
                    self.save_checkpoint()
            case PhaseEnd():
                if event.pretrained is not None:
                    files = model_files(self._model(), event.pretrained)
                    write_folder(self.run.pretrained, files)
                self.save_checkpoint()
            case CalibrationEnd():
                write_folder(self.run.best, model_files(self._model()))
                scores = self.session.result.validation
                if scores is not None:
                    write_file(self.run.path / VALIDATION, to_json(asdict(scores)))

    def is_due(self, update: int) -> bool:
        """Return True if ``training.checkpoint_every`` asks for a checkpoint now.

        Args:
            update: Number of the update that was just made, from 1.
        """
        every = self.session.config.training.checkpoint_every or {}
        is_late = self._checkpoint_age() >= 60 * every.get("minutes", math.inf)
        return is_late or update % every.get("steps", update + 1) == 0

    def stop(self, signal_number: int, stopped_by: str) -> Interrupted:
        """Write a checkpoint if anything changed since the last one, and return an error to raise.

        Args:
            signal_number: Signal that stopped the run.
            stopped_by: Name of the signal, or of what else stopped the run.

        Returns:
            An Interrupted error whose message has the command that resumes the run.

        Raises:
            RunError: If the checkpoint can't be written, or a weight isn't finite.
        """
        if not self._is_saved:
            self.save_checkpoint()
        run = self.run.path
        command = self.session.processes.command()
        done = f"stopped by {stopped_by} after {self.position()}, saved"
        again = either(
            f"resume with: {command} fit {quote(str(run / CONFIG))} --resume --run-dir "
            f"{quote(str(run))}",
            f"to continue, call fit again with run_dir={str(run)!r}, resume=True",
        )
        return Interrupted(signal_number, f"{done}; {again}")

    def warnings(self) -> list[str]:
        """Return warnings about the predictions for validation and test, one line each.

        There is at most one warning that all predictions are of one class.
        """
        session = self.session
        found = list(session.result.notes)
        of_one_class = []
        scored = {"validation": session.result.validation, "test": session.result.test}
        for split, scores in scored.items():
            if scores is not None:
                of_one_class += single_class_warnings(scores, split)
                found += missing_class_warnings(scores, split)
        return of_one_class[:1] + found

    def finalize(self) -> None:
        """Write the scores of test, if there are any, and the "end" line of metrics.jsonl.

        The folder ``previous/`` is removed if the checkpoint in ``last/`` is intact.

        Raises:
            RunError: If a file can't be written.
        """
        session = self.session
        progress = session.progress
        monitor = session.config.training.monitor
        end = {
            "event": "end",
            "epochs": progress.epoch,
            "best_epoch": session.best_epoch,
            "best_value": session.best_value(),
            "refit": progress.phase == "refit",
            "step": progress.updates,
            "monitor": monitor,
        }
        if session.result.test is not None:
            write_file(self.run.path / TEST, to_json(asdict(session.result.test)))
            end["test"] = session.result.test.metric_values()
        self._log({**end, "peak_memory_bytes": peak_memory(session.device)})
        if self._last_is_whole:  # otherwise previous/ is the only intact checkpoint
            remove(self.run.previous)

    def save_checkpoint(self) -> None:
        """Write the best model to ``best/``, if it is new, and then a checkpoint to ``last/``.

        An intact earlier checkpoint in ``last/`` is moved to ``previous/``. A damaged one is
        replaced, and ``previous/`` doesn't change.

        Raises:
            RunError: If a weight isn't finite, or a file can't be written.
        """
        state = self.session.state_dict()
        tensors = state["training"]
        progress = state["progress"]
        checkpoint = Checkpoint(self._model(), tensors, progress, self._metrics_length)
        self._check_finite(state["network"] | tensors)
        best = self.session.best
        if best is not None and best is not self._saved_best:
            self._check_finite(best)
            write_folder(self.run.best, model_files(self._model(), weights=best))
            self._saved_best = best
        previous = self.run.previous if self._last_is_whole else None
        write_folder(self.run.last, checkpoint_files(checkpoint), previous=previous)
        self._last_is_whole = self._is_saved = True
        encoder = checkpoint.model.preprocessing.pretrained
        if encoder is not None:
            # From now on the files of models are links to these, not copies of the user's.
            encoder.folder = self.run.last / ENCODER
            encoder.is_stored = True
        self._saved_at = time.monotonic()

    def position(self) -> str:
        """Return the current phase and update for messages, such as "training, update 300"."""
        progress = self.session.progress
        return f"{progress.phase}, update {progress.updates}"

    def _model(self) -> Model:
        session = self.session
        return Model(session.network, session.data.preprocessing, session.calibration)

    def _checkpoint_age(self) -> float:
        return time.monotonic() - self._saved_at

    def _check_finite(self, tensors: Mapping[str, Tensor]) -> None:
        for name, tensor in tensors.items():
            if not tensor.is_floating_point() or not tensor.numel():
                continue
            # isfinite of the whole tensor would need twice its memory.
            if not bool(torch.stack(tensor.aminmax()).isfinite().all()):
                section = self.session.setup.section
                raise RunError(
                    f"{self.position()}: {name} holds values that aren't finite; not saved; lower "
                    f"{section}.lr or training.weight_decay; what was saved stays valid"
                )

    def _write_config(self) -> None:
        write_file(self.run.path / CONFIG, render_config(self.session.config).encode())

    def _log(self, line: dict[str, Any]) -> None:
        self._metrics_length = self.run.append_metrics(line)


def metrics_line(event: UpdateEvent | EpochEvent) -> dict[str, Any]:
    """Return the line of metrics.jsonl for an event, as a dict.

    The entry "event" is "step" for an update. For an epoch, it is "pretrain", "epoch" or "refit",
    depending on the phase.
    """
    line = {"epoch": event.epoch, "step": event.update}
    if isinstance(event, UpdateEvent):
        return {"event": "step", **line, "loss": event.loss, "lr": event.lr}
    speed = {
        "lr": event.lr,
        "seconds": event.seconds,
        "tokens": event.time_steps,
        "tokens_per_second": event.time_steps / event.seconds,
    }
    if event.phase == "pretraining":
        loss = event.validation_loss
        if loss is None:
            validation = None
        else:
            validation = {"loss": loss, "perplexity": perplexity(loss)}
        train = {"loss": event.loss, "perplexity": perplexity(event.loss)}
        return {"event": "pretrain", **line, **train, "validation": validation, **speed}
    return {
        "event": "epoch" if event.phase == "training" else event.phase,
        **line,
        "train": {"loss": event.loss, "accuracy": event.accuracy},
        "validation": None if event.validation is None else event.validation.metric_values(),
        **speed,
        "padding_fraction": event.padding_fraction,
        "best": event.is_best,
    }
