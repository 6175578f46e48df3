"""A search on the screen: a line per trial, a table at the end; and its picture."""

from __future__ import annotations

import math

from seqtrain.cli.output.columns import Column, print_columns
from seqtrain.cli.output.console import note, stderr_console
from seqtrain.cli.output.epoch_rows import score_text
from seqtrain.cli.output.svg import svg_picture, svg_text
from seqtrain.config import Config
from seqtrain.config.document import flow
from seqtrain.text import counted, shorten
from seqtrain.tuning.space import differing
from seqtrain.tuning.trials import Trial, best_of
from seqtrain.tuning.tune import Tuned

CHART = "trials.svg"
SHOWN = 10
"""Trials of the table at the end."""
WIDTH, HEIGHT, EDGE = 720, 280, 64
"""Pixels of the picture, and around what is drawn."""
DOTS = {"complete": "#2f81c7", "pruned": "#999", "stopped": "#999"}


class TuneScreen:
    """A listener of `tune`.

    Args:
        config: that is tuned.
        quiet: show nothing.
    """

    def __init__(self, config: Config, *, quiet: bool) -> None:
        self.config = config
        self.quiet = quiet

    def __call__(self, trial: Trial, is_best: bool) -> None:
        """Show one trial that is over."""
        if self.quiet:
            return
        what = f"{trial.state}: {trial.problem}" if trial.problem else trial.state
        if trial.value is not None:
            what = f"{_figure(self.config, trial.value)}, {what}, epoch {trial.best_epoch}"
        settings, mark = _settings(self.config, trial), "*" if is_best else " "
        note(f"{trial.number:3d} {mark} {what} ({trial.seconds:.0f} s): {settings}")

    def show_end(self, found: Tuned) -> None:
        """Show the best trials, and what the best one is worth."""
        if self.quiet:
            return
        scored = [t for t in found.trials if t.state in ("complete", "stopped") and t.curve]
        shown = sorted(scored, key=lambda trial: trial.order, reverse=True)[:SHOWN]
        config, monitor = self.config, found.config.training.monitor
        print_columns(
            stderr_console(),
            [
                Column("trial", [str(trial.number) for trial in shown]),
                Column(f"val. {monitor}", [_figure(config, trial.value or 0.0) for trial in shown]),
                Column("state", [trial.state for trial in shown], rank=1),
                Column("settings", [_settings(config, trial) for trial in shown], "words"),
            ],
        )
        states = [trial.state for trial in found.trials]
        counts = [f"{states.count(s)} {s}" for s in dict.fromkeys(states)]
        note(f"{counted(len(states), 'trial')}: {', '.join(counts)}")
        note(
            f"best: trial {found.best.number}; on validation, which chose it: {monitor} "
            f"{_figure(config, found.best.value or 0.0)}"
        )
        if found.run.test is not None:
            scores = found.run.test
            value, rows = getattr(scores, monitor), scores.num_examples
            error = ""
            if monitor == "accuracy":
                error = f" ± {math.sqrt(value * (1 - value) / rows):.1%} (standard error)"
            note(f"on {rows:,} rows that chose nothing: {monitor} {_figure(config, value)}{error}")
        if found.others:
            note(f"{counted(len(found.others), 'trial')} of other searches in --storage")
            better = best_of([found.best, *found.others])
            if better is not None and better is not found.best:
                figure = _figure(config, better.value or 0.0)
                note(f"better than this search's best: trial {better.number} of another, {figure}")


def draw_trials(found: Tuned, title: str) -> str:
    """Return an SVG picture: a dot per trial, and a line of the best so far."""
    trials = [trial for trial in found.trials if trial.curve]
    values = [trial.curve[-1][1] for trial in trials]
    low, high = min(values), max(values)
    wide = max(1, found.trials[-1].number)

    def place(number: int, value: float) -> str:
        x = EDGE + number / wide * (WIDTH - 2 * EDGE)
        y = HEIGHT - EDGE - (value - low) / ((high - low) or 1) * (HEIGHT - 2 * EDGE)
        return f"{x:.1f} {y:.1f}"

    best, steps = -math.inf, ""
    for trial in trials:
        if trial.state == "complete" and trial.curve[-1][1] > best:
            start = place(trial.number, best) if steps else ""
            best = trial.curve[-1][1]
            steps += f"L{start}" * bool(start) + ("L" if steps else "M") + place(trial.number, best)
    steps += f"L{place(wide, best)}"
    dots = []
    for trial in trials:
        x, y = place(trial.number, trial.curve[-1][1]).split()
        dots.append(f'<circle cx="{x}" cy="{y}" r="4" fill="{DOTS.get(trial.state, "#c33")}"/>')
    title, base = shorten(title, 40), HEIGHT - EDGE
    texts = [
        svg_text(16, 26, f"{title}: {found.config.training.monitor} on validation, trial by trial"),
        svg_text(EDGE - 8, EDGE + 4, _figure(found.config, abs(high)), anchor="end"),
        svg_text(EDGE - 8, base + 4, _figure(found.config, abs(low)), anchor="end"),
        svg_text(EDGE, base + 28, "0: the config itself"),
        svg_text(WIDTH - EDGE, base + 28, f"{found.trials[-1].number}", anchor="end"),
        svg_text(16, 44, "blue: complete, grey: given up or out of time; line: best so far"),
    ]
    line = f'<path d="{steps}" fill="none" style="stroke: #d08a1d; stroke-width: 2"/>'
    return svg_picture(WIDTH, HEIGHT, [*texts, line, *dots])


def _figure(config: Config, value: float) -> str:
    return score_text(config.training.monitor, value)


def _settings(config: Config, trial: Trial) -> str:
    """Write what a trial changed."""
    return (
        ", ".join(
            f"{key.partition('.')[2]} {flow(value)}"
            for key, value in differing(config, trial.settings).items()
        )
        or "the config itself"
    )
