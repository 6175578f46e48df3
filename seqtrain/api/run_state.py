"""What a run is while it goes on: the model and its trainers, new or put back from a checkpoint."""

import json

import numpy as np
import safetensors.torch
import torch

from seqtrain.api.environment import Setting, check_same_data
from seqtrain.api.start import ResumePoint
from seqtrain.data.batch import memory_errors
from seqtrain.data.store import SequenceStore, joined_stores
from seqtrain.data.vocabulary import UNK
from seqtrain.data.word_vectors import WordVectors
from seqtrain.errors import CheckpointError
from seqtrain.evaluation.calibration import Calibration
from seqtrain.model.branches.recurrent import recurrent_branch
from seqtrain.model.decoder import OBJECTIVES
from seqtrain.model.initialization import use_word_vectors
from seqtrain.runs.checkpoint import STATE
from seqtrain.runs.model_folder import Model, new_network
from seqtrain.text import counted, listed
from seqtrain.training.objectives import Classification
from seqtrain.training.token_prediction import TokenPrediction
from seqtrain.training.trainer import Trainer

CLEARLY = 2.0
"""Standard errors by which a model should be better than always the largest class."""


class RunState:
    """A run under way: its trainer, and its pretrainer until pretraining is done."""

    def __init__(self, setting: Setting, model: Model, *, pretrains: bool = True) -> None:
        self.setting, self.config, self.data = setting, setting.config, setting.data
        self.processes, self.model = setting.processes, model
        self.kept: str | None = None  # of an old model, in words
        splits, given = self.data.splits, (self.config, setting.device, setting.processes)
        validation, names = splits.get("validation"), model.preprocessing.labels
        network = model.network.to(setting.device)
        self.trainer = Trainer(Classification(network, splits["train"], validation, names, *given))
        self.pretrainer: Trainer | None = None
        settings, rows = self.config.pretraining, self.data.unlabelled
        if pretrains and rows is not None and settings.objective is not None:
            predictor = OBJECTIVES[settings.objective](network, settings.dropout)
            predictor.initialize(self.config.seed)
            predictor.to(setting.device)
            self.pretrainer = Trainer(TokenPrediction(predictor, rows, validation, *given))

    @property
    def learner(self) -> Trainer:
        """What learns now."""
        return self.pretrainer or self.trainer

    def begin_refit(self) -> None:
        """Begin with initial weights on train and validation together, for as long as it helped."""
        before, calibration, rows = self.trainer.progress, self.model.calibration, self._all_rows()
        self.model = new_model(self.setting, rows).calibrated(calibration)
        self.take(None)
        self._use_refitter(rows, before.refit_epochs)
        for name in ("best_epoch", "best_value", "best_error", "refit_epochs"):
            setattr(self.trainer.progress, name, getattr(before, name))

    def put_back(self, tensors: dict[str, torch.Tensor], values: dict[str, object]) -> None:
        """Go on from what a trainer captured; ValueError where this run captures no such thing."""
        if not values.get("pretraining"):
            self.pretrainer = None
        if values.get("refit") is True and self.config.training.refit:
            self._use_refitter(self._all_rows(), int(str(values.get("refit_epochs"))))
        self.learner.restore(tensors, values)

    def follow_first(self) -> None:
        """Take over where the first process stands: weights, optimizer, counters."""
        if self.processes.size > 1:
            tensors, values = self.learner.capture()
            values = json.loads(self.processes.broadcast(json.dumps(values).encode()))
            tensors = self._of_first(tensors)
            self.take(None)
            if not self.processes.is_first:
                self.put_back(tensors, values)

    def take(self, weights: dict[str, torch.Tensor] | None) -> None:
        """Let the network have other weights, which the first process gives."""
        network = self.model.network
        if weights is not None:
            network.load_state_dict(weights)
        if self.processes.size > 1:
            network.load_state_dict(self._of_first(network.state_dict()))

    def _of_first(self, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        own = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
        content = safetensors.torch.save(own) if self.processes.is_first else b""
        return safetensors.torch.load(self.processes.broadcast(content))

    def _all_rows(self) -> SequenceStore:
        """Return train and validation together, but for rows with labels that train lacks."""
        rows = joined_stores([self.data.splits[name] for name in ("train", "validation")])
        return rows.selection(np.flatnonzero(rows.labels.reshape(len(rows), -1).min(axis=1) >= 0))

    def _use_refitter(self, rows: SequenceStore, epochs: int) -> None:
        # auto would count other epochs, of more rows
        config = self.config.with_keys(training={"max_epochs": self.trainer.budget.epochs})
        given = (self.model.preprocessing.labels, config, self.setting.device, self.processes)
        refit = Classification(self.model.network, rows, None, *given, refit=True)
        self.trainer = Trainer(refit, epochs)

    @property
    def nothing_left(self) -> str | None:
        """Why nothing is left to train; None where something is."""
        settings, progress = self.config.training, self.trainer.progress
        budget = self.trainer.budget
        if settings.refit and (not progress.refit or progress.epoch < self.trainer.last_epoch):
            return None
        if progress.refit:
            done = f"the {progress.epoch} epochs of training.refit are done"
            return f"{done}, and none can follow; for another model begin a new run"
        if progress.epoch >= budget.epochs or self.trainer.out_of_patience:
            done = f"training ended after epoch {progress.epoch}, the best is {progress.best_epoch}"
            return f"{done}; to go on, raise training.max_epochs or training.patience"
        return None

    @property
    def advice(self) -> str | None:
        """What may be gained by training longer; None where nothing hints at it."""
        trainer, progress, budget = self.trainer, self.trainer.progress, self.trainer.budget
        if "validation" not in self.data.splits:
            return None
        if progress.best_value is not None and progress.best_value >= 1:
            return None  # all of validation is right
        if not trainer.beats_chance(CLEARLY):
            return (
                f"validation accuracy {progress.best_value:.1%} is hardly better than always the "
                f"largest class ({trainer.objective.chance:.1%}): are data.sequence and data.label "
                "the right columns (seqtrain data)? else try training.lr, or more rows"
            )
        if trainer.out_of_patience and progress.loss_fell:
            return (
                f"training.patience ({budget.patience} epochs) ended it while the validation loss "
                "still fell; more patience may help"
            )
        if 1 < progress.epoch == progress.best_epoch == budget.epochs:
            more = f"more than {budget.epochs} may help: training.max_epochs"
            return f"the last epoch was the best; {more}"
        return None


def new_model(setting: Setting, rows: SequenceStore) -> Model:
    """Return a model with initial weights: drawn, of a file of word vectors, or fitted on rows.

    What is fitted is so in the first process alone, which sends it to the others.
    """
    data = setting.data
    network = new_network(setting.config.model, data.preprocessing)
    network.initialize(setting.config.seed)
    embedding = recurrent_branch(network).embedding
    if data.vectors is not None and isinstance(embedding, torch.nn.Embedding):
        use_word_vectors(embedding, data.vectors)
    network.to(setting.device)
    if network.fixed_branches and setting.processes.is_first:
        with memory_errors(rows.lengths, "data.max_length, or set model.kernels: false"):
            network.fit(rows, setting.config.seed)
    weights = None if "validation" in data.splits else network.default_branch_weights
    return Model(network, data.preprocessing).calibrated(Calibration(branch_weights=weights))


@torch.no_grad()
def take_weights(old: Model, new: Model, vectors: WordVectors | None = None) -> str:
    """Copy an old model's weights into a new one; return what was kept and what is new, in a line.

    A new token begins with its vector of a file, if there is one, else with that of <unk>, as which
    the old model read it; a new label begins with its initial weights.
    """
    before, after = old.network.state_dict(), new.network.state_dict()
    for name, weight in after.items():
        if name.startswith(tuple(f"{branch}." for branch in new.network.fixed_branches)):
            continue  # fitted on the new train
        kept = before[name].to(weight.device)
        weight[tuple(map(slice, kept.shape))] = kept
    vocabulary, rules = old.preprocessing.vocabulary, new.preprocessing
    labels, kept_tokens, added_tokens = len(old.preprocessing.labels), 0, 0
    if vocabulary is not None:
        rows = after["embedding.weight"]
        is_new = torch.arange(len(rows), device="cpu") >= len(vocabulary)
        if vectors is not None:
            is_new[torch.from_numpy(np.array(vectors.rows))] = False
        rows[is_new] = rows[UNK].clone()
        kept_tokens, added_tokens = len(vocabulary), len(rows) - len(vocabulary)
    for name, coding in old.preprocessing.codings.items():
        sizes = [len(known) for known in coding.vocabularies]
        for number, size in enumerate(sizes):
            rows = after[f"{'embedding' if name == 'steps' else name}.tables.{number}.weight"]
            rows[size:] = rows[UNK]
            added_tokens += len(rows) - size
        kept_tokens += sum(sizes)
    counts = [(labels, len(rules.labels) - labels, "label"), (kept_tokens, added_tokens, "token")]
    known = [each for each in counts if each[0]]
    words = [counted(n, noun) for n, _, noun in known]
    words += [] if rules.ngrams is None else [counted(len(rules.ngrams), "n-gram")]
    added = [counted(more, noun) for _, more, noun in known]
    return f"kept {listed(words)}; added {listed(added)}"


def begin(setting: Setting, origin: Model | None) -> RunState:
    """Return a new run, with initial weights or those of an old model."""
    model = new_model(setting, setting.data.splits["train"])
    kept = None if origin is None else take_weights(origin, model, setting.data.vectors)
    state = RunState(setting, model)
    state.kept = kept
    return state


def resume(setting: Setting, point: ResumePoint) -> RunState:
    """Put back weights, optimizer and position of a run; refuse what doesn't fit."""
    config, data, checkpoint = setting.config, setting.data, point.checkpoint
    check_same_data(point.run, config, data, checkpoint.model.preprocessing)
    if checkpoint.model.network.config != config.model.architecture:
        problem = "the architecture isn't that of the run's config; restore the folder from a copy"
        raise CheckpointError(f"{point.folder}: {problem}")
    state = RunState(setting, checkpoint.model, pretrains=checkpoint.pretraining)
    try:
        state.put_back(checkpoint.tensors, checkpoint.progress)
    except ValueError as error:
        raise CheckpointError(f"{point.folder / STATE}: not a training state ({error})") from None
    return state
