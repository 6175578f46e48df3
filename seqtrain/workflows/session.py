"""One run under way: joins the trainer's events to the files of the run directory."""

from __future__ import annotations

import math
import signal
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import Any

import safetensors.torch
import torch

from seqtrain.config import render_config
from seqtrain.config.schema import Config
from seqtrain.data.preparation import PreparedData
from seqtrain.errors import CheckpointError, Interrupted
from seqtrain.model.encoder import choose_engine
from seqtrain.runs import run_directory
from seqtrain.runs.files import parse_json, read_folder, to_json, write_folder
from seqtrain.runs.model_folder import Model, load_model, model_files, new_network, parse_tensors
from seqtrain.runs.pretrained_folder import pretrained_files
from seqtrain.runs.run_directory import CONFIG, ENVIRONMENT, TEST, RunDirectory
from seqtrain.training.loop import EpochEvent, StepEvent, Trainer
from seqtrain.training.metrics import Scores
from seqtrain.training.pretraining import PretrainEpochEvent
from seqtrain.training.state import capture, restore
from seqtrain.workflows.classifier import Classifier
from seqtrain.workflows.environment import environment, peak_memory
from seqtrain.workflows.events import Listener, Run, StartEvent
from seqtrain.workflows.pretraining import make_pretrainer, pretrain_line
from seqtrain.workflows.resuming import check_data_unchanged, inexact
from seqtrain.workflows.stopping import StopSignals

STEPS_A_LINE = 50
"""Updates between two "step" lines of metrics.jsonl."""
STATE, STATE_TENSORS = "training_state.json", "training_state.safetensors"


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
        self.trainer: Trainer
        self.engine, self.engine_reason = choose_engine(config.model, device)
        self.metrics_length = 0
        self.warnings: list[str] = []

    def begin(self, path: Path | None, name: str, *, force: bool) -> None:
        """Draw the initial weights, make the run directory, write config and environment.

        Args:
            path: the run directory; None: runs/<name>-<time>.
            name: of the config.
            force: whether an earlier run there may be replaced.
        """
        network = new_network(self.config.model, self.data.preprocessing)
        network.initialize()
        self._set_up(Model(network, self.data.preprocessing))
        run = self.run = run_directory.create(path, name, force=force)
        run.write(CONFIG, render_config(self.config).encode())
        run.write_json(ENVIRONMENT, environment(self.data, self.device))
        if self._pretraining_is_due:
            self._save_last()

    def resume(self, run: RunDirectory) -> None:
        """Take weights, optimizer, generators and position from the last checkpoint.

        Raises:
            CheckpointError: there is none, it is damaged, or config or data changed since.
        """
        recorded = run.environment()
        check_data_unchanged(self.data.digests, recorded, run)
        self.warnings = inexact(recorded, environment(self.data, self.device))
        self._set_up(load_model(run.last))
        contents = read_folder(run.last, [STATE, STATE_TENSORS])
        values = parse_json(run.last / STATE, contents[STATE])
        tensors = parse_tensors(run.last / STATE_TENSORS, contents[STATE_TENSORS])
        try:
            self.metrics_length = int(values["metrics_length"])
            self.trainer.progress = restore(
                self.trainer.optimizer, self.device, tensors, values["progress"]
            )
            self.trainer.carried.load(tensors, self.trainer.model)
        except (LookupError, TypeError, ValueError, RuntimeError) as error:
            raise CheckpointError(f"{run.last / STATE}: not a training state ({error})") from None
        run.remove_strays()
        run.cut_metrics(self.metrics_length)
        self.run = run
        run.write(CONFIG, render_config(self.config).encode())

    def train(self) -> Run:
        """Train to the end, save after every epoch, and score the test split.

        Raises:
            RunError: the run failed; what was saved stays valid.
            Interrupted: a signal stopped it; the last checkpoint holds the last step.
        """
        trainer = self.trainer
        self.listener(
            StartEvent(
                run=self.run.path,
                config=self.config,
                device=str(self.device),
                engine=self.engine,
                engine_reason=self.engine_reason,
                parameters=sum(p.numel() for p in trainer.model.parameters()),
                resumed_at=trainer.progress.step,
                warnings=self.warnings,
            )
        )
        with StopSignals() as signals:
            if self._pretraining_is_due:
                self._pretrain(signals)
            for event in trainer.events():
                if isinstance(event, StepEvent):
                    self._after_step(event)
                else:
                    self._after_epoch(event)
                self.listener(event)
                if signals.received:
                    self._save_last()
                    raise Interrupted(signals.received, self._how_to_go_on(signals.received))
        return self._finish()

    @property
    def _pretraining_is_due(self) -> bool:
        return self.data.unlabelled is not None and self.trainer.progress.pretrained_epochs == 0

    def _pretrain(self, signals: StopSignals) -> None:
        """Let the encoder learn without labels, and save it; where stopped, it begins anew."""
        pretrainer = make_pretrainer(self.model.network, self.data, self.config, self.device)
        for event in pretrainer.events():
            if isinstance(event, PretrainEpochEvent):
                self.metrics_length = self.run.append_metrics(pretrain_line(event))
            self.listener(event)
            if signals.received:
                raise Interrupted(signals.received, self._how_to_go_on(signals.received))
        write_folder(self.run.pretrained, pretrained_files(self.model, pretrainer.model))
        self.trainer.progress.pretrained_epochs = self.config.pretraining.max_epochs
        self._save_last()

    def _set_up(self, model: Model) -> None:
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

    def _after_step(self, event: StepEvent) -> None:
        if event.step % STEPS_A_LINE == 0:
            self.metrics_length = self.run.append_metrics(
                {
                    "event": "step",
                    "epoch": event.epoch,
                    "step": event.step,
                    "loss": event.loss,
                    "lr": event.lr,
                }
            )

    def _after_epoch(self, event: EpochEvent) -> None:
        engine = {"engine": self.engine, "engine_reason": self.engine_reason}
        self.metrics_length = self.run.append_metrics({**epoch_line(event), **engine})
        if event.is_best:
            write_folder(self.run.best, model_files(self.model))
        self._save_last()

    def _save_last(self) -> None:
        """Write the model and all that going on from here needs."""
        tensors, progress = capture(self.trainer.optimizer, self.trainer.progress, self.device)
        tensors |= self.trainer.carried.tensors()
        state = {"metrics_length": self.metrics_length, "progress": progress}
        files = model_files(self.model)
        files[STATE] = to_json(state)
        files[STATE_TENSORS] = safetensors.torch.save(
            {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        )
        write_folder(self.run.last, files)

    def _finish(self) -> Run:
        """Score the test split at the best epoch and close the metrics."""
        progress = self.trainer.progress
        scores: Scores | None = None
        if "test" in self.data.splits:
            classifier = Classifier(load_model(self.run.best), self.device, self.run.path)
            scores = classifier.score(self.data.splits["test"])
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
        place = f"after step {self.trainer.progress.step}, saved"
        if self._pretraining_is_due:
            place = "while pretraining, which begins anew"
        return (
            f"stopped by {name} {place}; go on with: "
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
