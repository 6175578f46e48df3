"""Screen of `seqtrain tune`: a line per trial, and the best trial."""

import math

from seqtrain.api.search_space import differing
from seqtrain.api.study import Trial
from seqtrain.api.tune import Tuned
from seqtrain.cli.screens.console import note
from seqtrain.cli.screens.fit import note_next, score_text
from seqtrain.config import Config
from seqtrain.config.document import flow
from seqtrain.text import counted


class TuneScreen:
    """Listener of `tune` that prints a line for each finished trial.

    Args:
        config: Config with the settings that the search changes.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._monitor = config.training.monitor

    def __call__(self, trial: Trial, is_best: bool) -> None:
        if trial.problem:
            what = f"{trial.state}: {trial.problem}"
        else:
            what = trial.state
        if trial.value is not None:
            what = f"{self._monitor} {self._score(trial)}, {what}, epoch {trial.best_epoch}"
        mark = "*" if is_best else " "
        changed = differing(self._config, trial.settings).items()
        texts = [f"{key.partition('.')[2]} {flow(value)}" for key, value in changed]
        settings = ", ".join(texts) or "the config itself"
        note(f"{trial.number:3d} {mark} {what} ({trial.seconds:.0f} s)", f"      {settings}")

    def show_end(self, found: Tuned) -> None:
        """Print the number of trials by state, and the best trial with its scores."""
        states = [trial.state for trial in found.trials]
        counts = [f"{states.count(state)} {state}" for state in dict.fromkeys(states)]
        note(f"{counted(len(states), 'trial')}: {', '.join(counts)}")
        note(
            f"best: trial {found.best.number}; {self._monitor} {self._score(found.best)} on "
            "validation, which chose it"
        )
        scores = found.run.test
        if scores is not None:
            value = getattr(scores, self._monitor)
            rows = scores.num_examples
            score = f"{self._monitor} {score_text(self._monitor, value)}"
            if self._monitor == "accuracy":
                score += f" ± {math.sqrt(value * (1 - value) / rows):.1%} (standard error)"
            note(f"{score} on {counted(rows, 'test row')}, which no trial has seen")
        note_next(found.run.path, "predict FILE", "eval", "report")

    def _score(self, trial: Trial) -> str:
        return score_text(self._monitor, trial.value or 0.0)
