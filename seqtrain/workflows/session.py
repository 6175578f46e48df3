"""One run under way: joins the trainer's events to the files of the run directory."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

import torch

from seqtrain.config import render_config
from seqtrain.config.schema import Config
from seqtrain.data.preparation import PreparedData
from seqtrain.errors import CheckpointError, Interrupted
from seqtrain.model.engines.choice import choose_engine
from seqtrain.runs.checkpoint import STATE, Checkpoint, checkpoint_files
from seqtrain.runs.files import write_folder
from seqtrain.runs.model_folder import Model, load_model, model_files, new_network
from seqtrain.runs.pretrained_folder import pretrained_files
from seqtrain.runs.run_directory import CONFIG, ENVIRONMENT, TEST, RunDirectory
from seqtrain.signals import StopSignals
from seqtrain.training.loop import EpochEvent, Trainer
from seqtrain.training.metrics import Scores
from seqtrain.training.pretraining import PretrainEpochEvent, Pretrainer, PretrainStepEvent
from seqtrain.training.steps import StepEvent
from seqtrain.workflows.classifier import Classifier
from seqtrain.workflows.environment import environment, peak_memory
from seqtrain.workflows.events import Listener, Run, StartEvent, WarningEvent
from seqtrain.workflows.pretraining import make_pretrainer, pretrain_line
from seqtrain.workflows.resuming import (
    Standing,
    check_data_unchanged,
    check_model_unchanged,
    inexact,
    is_best,
    nothing_left,
    stays,
)

STEPS_A_LINE = 50
"""Updates between two "step" lines of metrics.jsonl."""


class Session:
    """A run: `begin` or `resume` it, then `train` it to its end.

    Args:
        config: resolved.
        data: prepared.
        device: where to compute.
        listener: is called with every event.
    """

    def __init__(
        self, config: Config, data: PreparedData, device: torch.device, listener: Listener
    ) -> None:
        self.config = config
        self.data = data
        self.device = device
        self.listener = listener
        self.run: RunDirectory
        self.model: Model
        self.trainer: Trainer
        self.learner: Trainer | Pretrainer
        engine = choose_engine(config.model, device)
        self.engine, self.engine_reason = engine.name, engine.reason
        self.metrics_length = 0
        self.saved_at = 0.0
        self.last_is_whole = True
        self.warnings: list[str] = []

    def initialize(self) -> None:
        """Draw the initial weights; nothing is written yet."""
        network = new_network(self.config.model, self.data.preprocessing)
        network.initialize(self.config.seed)
        model = Model(network, self.data.preprocessing)
        self._set_up(model, pretraining=self.data.unlabelled is not None)

    def begin(self, run: RunDirectory, *, force: bool) -> None:
        """Write the run's first files; the config comes last, when the run can be resumed.

        Args:
            run: locked.
            force: whether an earlier run in it may be replaced.
        """
        self.run = run
        run.clear(force=force)
        run.write_json(ENVIRONMENT, environment(self.data, self.device))
        self._save_last()
        run.write(CONFIG, render_config(self.config).encode())

    def resume(self, run: RunDirectory, standing: Standing) -> None:
        """Take weights, optimizer, generators and position from a checkpoint.

        Args:
            run: locked.
            standing: what it goes on from.

        Raises:
            CheckpointError: it doesn't fit, or the data changed since.
        """
        folder, checkpoint = standing.folder, standing.checkpoint
        check_data_unchanged(self.data.digests, standing.recorded, run)
        self.warnings = standing.warnings
        self.warnings += inexact(standing.recorded, environment(self.data, self.device))
        self.last_is_whole = folder == run.last
        check_model_unchanged(checkpoint.model, self.config, self.data.preprocessing, folder)
        pretraining = checkpoint.pretraining and self.data.unlabelled is not None
        self._set_up(checkpoint.model, pretraining=pretraining)
        try:
            self.learner.restore(checkpoint.tensors, checkpoint.progress)
        except ValueError as error:
            raise CheckpointError(f"{folder / STATE}: not a training state ({error})") from None
        self.run, self.metrics_length = run, checkpoint.metrics_length
        self.warnings += map(stays, run.remove_strays())
        run.cut_metrics(self.metrics_length)
        self._save_best_if_due()
        if not nothing_left(self.trainer):
            run.write(CONFIG, render_config(self.config).encode())

    def train(self, stopped_by: int | None = None) -> Run:
        """Train to the end, save after every epoch, and score the test split.

        Args:
            stopped_by: a signal that came before and is to be answered after the first step.

        Raises:
            RunError: the run failed; what was saved stays valid.
            Interrupted: a signal stopped it; the last checkpoint holds the last step.
        """
        self.listener(
            StartEvent(
                run=self.run.path,
                config=self.config,
                device=str(self.device),
                engine=self.engine,
                engine_reason=self.engine_reason,
                parameters=sum(p.numel() for p in self.trainer.model.parameters()),
                resumed_at=self.learner.progress.step,
                nothing_left=nothing_left(self.trainer),
                pretraining=self.learner.progress.pretraining,
                warnings=self.warnings,
            )
        )
        with StopSignals() as signals:
            signals.received = signals.received or stopped_by
            answer = partial(self._answer, signals)
            self._learn(answer)
            if isinstance(self.learner, Pretrainer):
                self._write(self.run.pretrained, pretrained_files(self.model, self.learner.model))
                self.learner = self.trainer
                self._save_last()
                self._learn(answer)
            return self._finish(answer)

    def _answer(self, signals: StopSignals) -> None:
        """Save and stop where a signal asks for it: after a step, and before a batch is scored."""
        if signals.received:
            self._save_last()
            raise Interrupted(signals.received, self._how_to_go_on(signals.received))

    def _learn(self, answer: Callable[[], None]) -> None:
        """Pretrain, or train, to the end; save after every epoch, and where a signal stops it."""
        for event in self.learner.events(before_scoring=answer):
            if isinstance(event, StepEvent):
                self._after_step(event)
            elif isinstance(event, PretrainEpochEvent):
                self.metrics_length = self.run.append_metrics(pretrain_line(event))
                self._save_last()
            else:
                self._after_epoch(event)
            self.listener(event)
            answer()

    def _set_up(self, model: Model, *, pretraining: bool) -> None:
        model.network.to(self.device)
        splits = self.data.splits
        self.model = model
        self.trainer = Trainer(
            model.network,
            splits["train"],
            splits.get("validation"),
            model.preprocessing.labels,
            self.config,
            self.device,
        )
        self.learner = self.trainer
        if pretraining:
            self.learner = make_pretrainer(model.network, self.data, self.config, self.device)

    def _after_step(self, event: StepEvent) -> None:
        if event.step % STEPS_A_LINE == 0 and not isinstance(event, PretrainStepEvent):
            self.metrics_length = self.run.append_metrics(
                {
                    "event": "step",
                    "epoch": event.epoch,
                    "step": event.step,
                    "loss": event.loss,
                    "lr": event.lr,
                }
            )
        if self._is_due(event.step):
            self._save_last()

    def _is_due(self, step: int) -> bool:
        """Whether training.checkpoint_every asks for a checkpoint after this step."""
        every = self.config.training.checkpoint_every or {}
        minutes = (time.monotonic() - self.saved_at) / 60
        return step % every.get("steps", step + 1) == 0 or minutes >= every.get("minutes", math.inf)

    def _after_epoch(self, event: EpochEvent) -> None:
        engine = {"engine": self.engine, "engine_reason": self.engine_reason}
        self.metrics_length = self.run.append_metrics({**epoch_line(event), **engine})
        self._save_last()
        self._save_best_if_due()

    def _save_best_if_due(self) -> None:
        """Write the best model, right after the epoch that brought it was saved as the last."""
        if is_best(self.trainer.progress):
            self._write(self.run.best, model_files(self.model))

    def _save_last(self) -> None:
        """Write the model and all that going on from here needs."""
        checkpoint = Checkpoint(self.model, *self.learner.capture(), self.metrics_length)
        kept = self.run.previous if self.last_is_whole else None
        self._write(self.run.last, checkpoint_files(checkpoint), previous=kept)
        self.last_is_whole, self.saved_at = True, time.monotonic()

    def _write(self, target: Path, files: dict[str, bytes], previous: Path | None = None) -> None:
        """Write a folder, and say where the one it replaces can't be removed."""
        left = write_folder(target, files, previous)
        if left is not None:
            self.listener(WarningEvent(stays(left)))

    def _finish(self, answer: Callable[[], None]) -> Run:
        """Score the test split at the best epoch, unless stopped meanwhile; close the metrics."""
        progress = self.trainer.progress
        scores: Scores | None = None
        if "test" in self.data.splits:
            classifier = Classifier(load_model(self.run.best), self.device, self.run.path)
            scores = classifier.score(self.data.splits["test"], before_batch=answer)
            self.run.write_json(TEST, asdict(scores))
        best = progress.best_value if progress.best_value is not None else math.nan
        best = -best if self.config.training.monitor == "loss" else best
        end: dict[str, Any] = {
            "event": "end",
            "epochs": progress.epoch,
            "step": progress.step,
            "best_epoch": progress.best_epoch,
            "monitor": self.config.training.monitor,
            "best_value": best,
            "peak_memory_bytes": peak_memory(self.device),
        }
        if scores:
            end["test"] = {name: getattr(scores, name) for name in ("loss", "accuracy", "macro_f1")}
        self.run.append_metrics(end)
        run = Run(
            path=self.run.path,
            epochs=progress.epoch,
            best_epoch=progress.best_epoch,
            best_value=best,
            stopped_early=self.trainer.out_of_patience,
            test=scores,
        )
        self.listener(run)
        return run

    def _how_to_go_on(self, number: int) -> str:
        name = signal.Signals(number).name
        progress = self.learner.progress
        step = f"{'pretraining ' if progress.pretraining else ''}step {progress.step}"
        return (
            f"stopped by {name} after {step}, saved; go on with: "
            f"seqtrain fit {quote(str(self.run.path / CONFIG))} --resume "
            f"--run-dir {quote(str(self.run.path))}"
        )


def epoch_line(event: EpochEvent) -> dict[str, Any]:
    """Return the "epoch" line of metrics.jsonl."""
    validation = None
    if event.validation is not None:
        names = ("loss", "accuracy", "macro_f1", "weighted_f1")
        validation = {name: getattr(event.validation, name) for name in names}
    return {
        "event": "epoch",
        "epoch": event.epoch,
        "step": event.step,
        "train": {"loss": event.train_loss, "accuracy": event.train_accuracy},
        "validation": validation,
        "lr": event.lr,
        "seconds": event.seconds,
        "tokens": event.tokens,
        "tokens_per_second": event.tokens / event.seconds,
        "padding_fraction": event.padding_fraction,
        "best": event.is_best,
    }
