"""What a run leaves behind: metrics, checkpoints, the best model; and when each is written."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
import torch

from seqtrain.api.environment import HELD_OUT, environment, held_out, peak_memory
from seqtrain.api.events import Listener, Run, StartEvent, WarningEvent
from seqtrain.api.metric_lines import epoch_line, pretraining_line, update_line
from seqtrain.api.origin import LINEAGE
from seqtrain.api.resume_point import is_best, stays
from seqtrain.api.run_state import RunState
from seqtrain.config import render_config
from seqtrain.errors import Interrupted, RunError
from seqtrain.evaluation.calibration import Calibration, calibrate
from seqtrain.evaluation.metrics import Scores, one_class_doubts
from seqtrain.files.folder import write_folder
from seqtrain.files.writing import remove
from seqtrain.model.decoder import PretrainingModel
from seqtrain.model.engines.choice import choose_engine
from seqtrain.model.ngrams import combined
from seqtrain.runs.checkpoint import Checkpoint, checkpoint_files
from seqtrain.runs.model_folder import Model, load_model, model_files, new_network
from seqtrain.runs.run_directory import CONFIG, ENVIRONMENT, TEST, RunDirectory
from seqtrain.signals import StopSignals
from seqtrain.training.events import EpochEvent, UpdateEvent
from seqtrain.training.objectives import shared_logits
from seqtrain.training.trainer import Trainer

UPDATES_PER_LINE = 50
"""Updates between two "step" lines of metrics.jsonl."""


class Recorder:
    """Writes a run's files as it goes on, and tells the listener.

    A checkpoint (last/) is written at the start, after each epoch, where training.checkpoint_every
    asks for it, and where a signal stops the run; the best model (best/) after the checkpoint of
    its epoch. Every saved model is settled, and finite. Of several processes that train together
    the first alone writes.

    Args:
        run: its directory, locked.
        state: what is recorded.
        listener: is called with every event.
    """

    def __init__(self, run: RunDirectory, state: RunState, listener: Listener) -> None:
        self.run = run
        self.state = state
        self.listener = listener
        self.writes = state.group.is_first
        engine = choose_engine(state.config.model, state.device)
        self.engine = {"engine": engine.name, "engine_reason": engine.reason}
        self.saved_at = time.monotonic()
        self.best_scores: Scores | None = None  # on validation, of an epoch since the start

    def begin(self, *, force: bool) -> None:
        """Write a new run's first files; the config comes last, when the run can be resumed.

        Args:
            force: whether an earlier run in its place may be replaced.
        """
        if not self.writes:
            return
        self.run.clear(force=force)
        state = self.state
        facts = environment(state.data, state.device, state.group.place)
        facts[HELD_OUT] = held_out(state.config, state.data)
        if state.lineage:
            facts[LINEAGE] = state.lineage
        self.run.write_json(ENVIRONMENT, facts)
        self.save_last()
        self.run.write(CONFIG, render_config(self.state.config).encode())

    def go_on(self) -> None:
        """Bring the directory to where the run goes on from."""
        if not self.writes:
            return
        self.state.warnings += map(stays, self.run.remove_strays())
        self.run.cut_metrics(self.state.metrics_length)
        self._save_best_if_due()
        if not self.state.nothing_left:
            remove(self.run.path / TEST)  # of the model before
            self.run.write(CONFIG, render_config(self.state.config).encode())

    def start(self) -> None:
        """Tell the listener what begins, or goes on."""
        state, progress = self.state, self.state.learner.progress
        self.listener(
            StartEvent(
                run=self.run.path,
                config=state.config,
                device=str(state.device),
                **self.engine,
                parameters=sum(p.numel() for p in state.model.network.parameters()),
                epochs=state.trainer.budget.epochs,
                updates=state.trainer.total_updates,
                resumed_at=progress.updates,
                nothing_left=state.nothing_left,
                pretraining=progress.pretraining,
                warnings=state.warnings,
                origin=state.origin,
            )
        )

    def record(self, event: UpdateEvent | EpochEvent) -> None:
        """Write down an event, save where it is due, and tell the listener."""
        if isinstance(event, UpdateEvent):
            if event.update % UPDATES_PER_LINE == 0 and not event.pretraining:
                self._append(update_line(event))
            if self._is_due(event.update):
                self.save_last()
        elif event.pretraining:
            self._append(pretraining_line(event))
            self.save_last()
        else:
            if event.is_best:
                self.best_scores = event.validation
            self._append({**epoch_line(event), **self.engine})
            self.save_last()
            self._save_best_if_due()
        self.listener(event)

    def answer(self, signals: StopSignals) -> None:
        """Save and stop where a signal asks for it.

        Raises:
            Interrupted: it does; the last checkpoint holds the last update.
        """
        if signals.received:
            self.save_last()
            stopped = Interrupted(signals.received, self._how_to_go_on(signals.received))
            stopped.told = not self.writes
            raise stopped

    def end_pretraining(self) -> None:
        """Keep what pretraining brought; a checkpoint from now on stands in training."""
        state = self.state
        assert state.pretrainer is not None
        pretrained = state.pretrainer.objective.model
        assert isinstance(pretrained, PretrainingModel)
        self._write(self.run.pretrained, model_files(state.model, pretrained))
        state.pretrainer = None
        self.save_last()

    def calibrate(self, before_batch: Callable[[], None]) -> Calibration:
        """Calibrate the best model on validation, where the config says so and there is one.

        Args:
            before_batch: is called before each batch; what it raises ends the work.
        """
        state = self.state
        validation = state.data.splits.get("validation")
        if validation is None or state.config.training.calibration == "none":
            return Calibration()
        best = self.best_model()
        network = best.network.to(state.device)
        logits = shared_logits(
            network, validation, state.device, state.group, before_batch, combine=combined
        )
        found = calibrate(logits, torch.from_numpy(np.array(validation.labels)))
        if found != best.calibration:
            self._write(self.run.best, model_files(best.calibrated(found)))
        return found

    def best_model(self) -> Model:
        """Return the best model, which the first process reads and sends to the others."""
        state = self.state
        group, preprocessing = state.group, state.data.preprocessing
        with group.together():
            if group.is_first:
                best = load_model(self.run.best)
            else:
                best = Model(new_network(state.config.model, preprocessing), preprocessing)
        calibration = best.calibration.model_dump() if group.is_first else None
        calibration = group.tell(calibration)[0]
        group.send_from_first(best.network.state_dict().values())
        return best.calibrated(Calibration.model_validate(calibration))

    def begin_refit(self, calibration: Calibration) -> None:
        """Begin to train anew on train and validation; a checkpoint from now on stands there.

        Args:
            calibration: of the model before; no rows are left that could tell of the new one's.
        """
        self.state.begin_refit()
        self.state.model = self.state.model.calibrated(calibration)
        self.save_last()

    def finish(self, scores: Scores | None) -> Run:
        """Write the scores of the test split and close the metrics; one checkpoint stays."""
        trainer, config = self.state.trainer, self.state.config
        if scores is not None and self.writes:
            self.run.write_json(TEST, asdict(scores))
        progress = trainer.progress
        best = progress.best_value if progress.best_value is not None else math.nan
        best = -best if config.training.monitor == "loss" else best
        end: dict[str, Any] = {
            "event": "end",
            "epochs": progress.epoch,
            "step": progress.updates,
            "best_epoch": progress.best_epoch,
            "monitor": config.training.monitor,
            "best_value": best,
            "refit": progress.refit,
            "peak_memory_bytes": peak_memory(self.state.device),
        }
        if scores:
            end["test"] = scores.figures()
        self._append(end)
        self._remove_previous()
        for name, found in (("validation", self.best_scores), ("test", scores)):
            doubts = one_class_doubts(found, name) if found else []
            if doubts:
                self.listener(WarningEvent(doubts[0]))
                break
        run = Run(
            path=self.run.path,
            epochs=progress.epoch,
            best_epoch=progress.best_epoch,
            best_value=best,
            stopped_early=trainer.out_of_patience,
            refit=progress.refit,
            test=scores,
            advice=_advice(trainer) if "validation" in self.state.data.splits else None,
        )
        self.listener(run)
        return run

    def save_last(self) -> None:
        """Write the model, settled, and all that going on from here needs.

        Raises:
            RunError: a weight isn't finite; nothing was written.
        """
        if not self.writes:
            return
        state = self.state
        with state.learner.settled():
            checkpoint = Checkpoint(state.model, *state.learner.capture(), state.metrics_length)
            self._check_finite(checkpoint)
            files = checkpoint_files(checkpoint)
        kept = self.run.previous if state.last_is_whole else None
        self._write(self.run.last, files, previous=kept)
        state.last_is_whole, self.saved_at = True, time.monotonic()

    def _check_finite(self, checkpoint: Checkpoint) -> None:
        tensors = checkpoint.model.network.state_dict() | checkpoint.tensors
        for name, tensor in tensors.items():
            if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
                section = self.state.learner.objective.key
                raise RunError(
                    f"{self._where()}: {name} holds values that aren't finite; not saved; lower "
                    f"{section}.lr or training.weight_decay; what was saved stays valid"
                )

    def _is_due(self, updates: int) -> bool:
        """Whether training.checkpoint_every asks for a checkpoint after this update."""
        every = self.state.config.training.checkpoint_every or {}
        minutes = (time.monotonic() - self.saved_at) / 60
        due = updates % every.get("steps", updates + 1) == 0
        return due or minutes >= every.get("minutes", math.inf)

    def _save_best_if_due(self) -> None:
        """Write the best model, right after the epoch that brought it was saved as the last."""
        if self.writes and is_best(self.state.trainer.progress):
            self._write(self.run.best, model_files(self.state.model))

    def _write(self, target: Path, files: dict[str, bytes], previous: Path | None = None) -> None:
        """Write a folder, and say where the one it replaces can't be removed."""
        if not self.writes:
            return
        left = write_folder(target, files, previous)
        if left is not None:
            self.listener(WarningEvent(stays(left)))

    def _remove_previous(self) -> None:
        """Remove previous/, which only an unfinished run may need, where last/ is sound."""
        if self.writes and self.state.last_is_whole:
            left = self.run.remove_previous()
            if left is not None:
                self.listener(WarningEvent(stays(left)))

    def _append(self, line: dict[str, Any]) -> None:
        if self.writes:
            self.state.metrics_length = self.run.append_metrics(line)

    def _where(self) -> str:
        progress = self.state.learner.progress
        phase = "pretraining " if progress.pretraining else "refit " if progress.refit else ""
        return f"{phase}step {progress.updates}"

    def _how_to_go_on(self, number: int) -> str:
        place = self.state.group.place
        together = f" --nproc-per-node {place.size}" if place.size == place.local_size > 1 else ""
        return (
            f"stopped by {signal.Signals(number).name} after {self._where()}, saved; go on with: "
            f"seqtrain fit {quote(str(self.run.path / CONFIG))} --resume "
            f"--run-dir {quote(str(self.run.path))}{together}"
        )


def _advice(trainer: Trainer) -> str | None:
    """Say what to try where training ended while the model still got better."""
    progress, budget = trainer.progress, trainer.budget
    if progress.best_value is not None and progress.best_value >= 1:
        return None  # all of validation is right
    if trainer.out_of_patience and progress.loss_fell:
        return (
            f"training.patience ({budget.patience} epochs) ended it while the validation loss "
            "still fell; more patience may help"
        )
    if 1 < progress.epoch == progress.best_epoch == budget.epochs:
        more = f"more than {budget.epochs} may help: training.max_epochs"
        return f"the last epoch was the best; {more}"
    return None
