"""What a run leaves behind: metrics, checkpoints, the best model; and when each is written."""

import math
import time
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from seqtrain.api.environment import peak_memory
from seqtrain.api.run_events import Listener, Run
from seqtrain.api.run_state import RunState
from seqtrain.api.start import ResumePoint
from seqtrain.config import render_config
from seqtrain.errors import RunError
from seqtrain.evaluation.scores import Scores, single_class_warnings
from seqtrain.files.writing import remove, remove_strays, to_json, write_file, write_folder
from seqtrain.model.decoder import PretrainingModel
from seqtrain.model.engines.choice import choose_engine
from seqtrain.runs.checkpoint import Checkpoint, checkpoint_files
from seqtrain.runs.destination import check_replaceable, remove_earlier
from seqtrain.runs.model_folder import load_model, model_files
from seqtrain.runs.run_directory import CONFIG, ENVIRONMENT, FOLDERS, TEST, RunDirectory
from seqtrain.training.events import EpochEvent, UpdateEvent, perplexity
from seqtrain.training.trainer import Trainer

UPDATES_PER_LINE = 50
"""Updates between two "step" lines of metrics.jsonl."""
SECONDS_BETWEEN = 30.0
"""Age of a checkpoint from which the end of an epoch writes a new one."""


class Recorder:
    """Writes a run's files as it goes on, and calls the listener; in the first process alone.

    A checkpoint (last/) is written at the start, where training or a refit ends, after an epoch
    where the last one is SECONDS_BETWEEN old, where training.checkpoint_every asks for it, and
    where a signal stops the run. The best model is written (best/) right before a checkpoint.
    Saved models are finite.
    """

    def __init__(
        self,
        run: RunDirectory,
        state: RunState,
        listener: Listener,
        point: ResumePoint | None = None,
    ) -> None:
        self.run = run
        self.state = state
        self.listener = listener
        self._metrics_length = 0 if point is None else point.checkpoint.metrics_length
        self._last_is_whole = point is None or point.folder == run.last
        engine = choose_engine(state.config.model, state.setting.device)
        self.engine = {"engine": engine.name, "engine_reason": engine.reason}
        self._saved_at = time.monotonic()
        self._best_scores: Scores | None = None  # on validation, of an epoch since the start
        self._best: dict[str, Tensor] | None = None  # its weights, until they are saved

    def begin(self, facts: dict[str, Any], *, force: bool) -> None:
        """Write a new run's first files; the config comes last, when the run can be resumed."""
        check_replaceable(self.run.path, "--run-dir", force=force)
        remove_earlier(self.run.path)
        write_file(self.run.path / ENVIRONMENT, to_json(facts))
        self.save_last()
        self._write_config()

    def go_on(self) -> None:
        """Bring the directory to where the run goes on from; what is out of date is removed."""
        remove_strays(self.run.path, FOLDERS)
        self.run.cut_metrics(self._metrics_length)
        if not self.state.nothing_left:
            remove(self.run.path / TEST)  # of the model before
            self._write_config()

    def record(self, event: UpdateEvent | EpochEvent) -> None:
        """Write down an event, save where it is due, and call the listener."""
        if isinstance(event, UpdateEvent):
            if event.update % UPDATES_PER_LINE == 0 and not event.pretraining:
                self._append(metrics_line(event))
            every = self.state.config.training.checkpoint_every or {}
            oldest = 60 * every.get("minutes", math.inf)
            due = event.update % every.get("steps", event.update + 1) == 0
        else:
            self._append(metrics_line(event) | ({} if event.pretraining else self.engine))
            if self.state.trainer.progress.is_best and not event.pretraining:
                weights, self._best = self.state.model.network.state_dict(), None
                self._best = {name: weight.clone() for name, weight in weights.items()}
            self._best_scores = event.validation if event.is_best else self._best_scores
            oldest, due = SECONDS_BETWEEN, False
        if due or time.monotonic() - self._saved_at >= oldest:
            self.save_last()
        self.listener(event)

    def best_weights(self) -> dict[str, Tensor]:
        """Return the weights of the best epoch."""
        return self._best or load_model(self.run.best).network.state_dict()

    def end_pretraining(self, pretrainer: Trainer) -> None:
        """Keep what pretraining brought; a checkpoint from now on stands in training."""
        pretrained = pretrainer.objective.model
        assert isinstance(pretrained, PretrainingModel)
        write_folder(self.run.pretrained, model_files(self.state.model, pretrained))
        self.save_last()

    def doubts(self, test: Scores | None) -> list[str]:
        """Say where the scores of validation, or else of test, are of one predicted class."""
        scored = {"validation": self._best_scores, "test": test}
        return [x for name, s in scored.items() if s for x in single_class_warnings(s, name)][:1]

    def finish(self, run: Run) -> None:
        """Write the scores of the test split and the "end" line; one checkpoint stays."""
        scores, trainer = run.test, self.state.trainer
        end: dict[str, Any] = {"event": "end", "epochs": run.epochs, "best_epoch": run.best_epoch}
        end |= {"best_value": run.best_value, "refit": run.refit, "step": trainer.progress.updates}
        end["monitor"] = self.state.config.training.monitor
        if scores is not None:
            write_file(self.run.path / TEST, to_json(asdict(scores)))
            end["test"] = scores.figures()
        self._append({**end, "peak_memory_bytes": peak_memory(self.state.setting.device)})
        if self._last_is_whole:  # else previous/ is the only sound checkpoint
            remove(self.run.previous)
        self.listener(run)

    def save_last(self) -> None:
        """Write the model, and all that going on from here needs; the best one before."""
        model, learner = self.state.model, self.state.learner
        checkpoint = Checkpoint(model, *learner.capture(), self._metrics_length)
        self._check_finite(model.network.state_dict() | checkpoint.tensors)
        if self._best is not None:
            self._check_finite(self._best)
            write_folder(self.run.best, model_files(model, weights=self._best))
            self._best = None
        kept = self.run.previous if self._last_is_whole else None
        write_folder(self.run.last, checkpoint_files(checkpoint), previous=kept)
        self._last_is_whole, self._saved_at = True, time.monotonic()

    def where(self) -> str:
        """Say after which update the run stands."""
        progress = self.state.learner.progress
        return f"{progress.phase} step {progress.updates}".lstrip()

    def _check_finite(self, tensors: dict[str, Tensor]) -> None:
        for name, tensor in tensors.items():
            if not tensor.is_floating_point() or not tensor.numel():
                continue
            # isfinite of the tensor itself would take twice its memory.
            if not bool(torch.stack(tensor.aminmax()).isfinite().all()):
                section = self.state.learner.objective.key
                raise RunError(
                    f"{self.where()}: {name} holds values that aren't finite; not saved; lower "
                    f"{section}.lr or training.weight_decay; what was saved stays valid"
                )

    def _write_config(self) -> None:
        write_file(self.run.path / CONFIG, render_config(self.state.config).encode())

    def _append(self, line: dict[str, Any]) -> None:
        self._metrics_length = self.run.append_metrics(line)


def metrics_line(event: UpdateEvent | EpochEvent) -> dict[str, Any]:
    """Return the line of metrics.jsonl: "step", "pretrain", "epoch" or "refit"."""
    line = {"epoch": event.epoch, "step": event.update}
    if isinstance(event, UpdateEvent):
        return {"event": "step", **line, "loss": event.loss, "lr": event.lr}
    speed = {
        "lr": event.lr,
        "seconds": event.seconds,
        "tokens": event.time_steps,
        "tokens_per_second": event.time_steps / event.seconds,
    }
    scores = None if event.validation is None else event.validation.figures()
    if event.pretraining:
        loss = event.validation_loss
        scores = None if loss is None else {"loss": loss, "perplexity": perplexity(loss)}
        own = {"loss": event.loss, "perplexity": perplexity(event.loss)}
        return {"event": "pretrain", **line, **own, "validation": scores, **speed}
    return {
        "event": "refit" if event.refit else "epoch",
        **line,
        "train": {"loss": event.loss, "accuracy": event.accuracy},
        "validation": scores,
        **speed,
        "padding_fraction": event.padding_fraction,
        "best": event.is_best,
    }
