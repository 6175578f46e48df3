"""Write the strokes data set: simulated pen strokes, whose class is the shape and how it's drawn.

Some classes cover the same points and differ in their order alone: a circle drawn clockwise or
anticlockwise, a spiral drawn inward or outward.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

HERE = Path(__file__).parent
SEED = 8
STROKES_PER_CLASS = {"train": 150, "validation": 25, "test": 25}
SHORTEST, LONGEST = 8, 400
DECIMALS = 3

Floats = npt.NDArray[np.float64]
Rng = np.random.Generator
Arrays = dict[str, npt.NDArray[Any]]
"""What a file holds, by name: values (N, 3), offsets (B + 1,), labels (B,)."""
Draw = Callable[[Floats, Rng], Floats]
"""From progress along the stroke, (T,) from 0 to 1, to points (T, 2); the shape is about 2 wide."""


def circle(progress: Floats, rng: Rng, direction: int) -> Floats:
    """Go once around, a little less or more; direction 1 is anticlockwise (y points up)."""
    angle = rng.uniform(0, 2 * np.pi) + direction * rng.uniform(0.9, 1.2) * 2 * np.pi * progress
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def circle_clockwise(progress: Floats, rng: Rng) -> Floats:
    """Draw a circle clockwise."""
    return circle(progress, rng, -1)


def circle_anticlockwise(progress: Floats, rng: Rng) -> Floats:
    """Draw a circle anticlockwise."""
    return circle(progress, rng, 1)


def spiral_outward(progress: Floats, rng: Rng) -> Floats:
    """Wind out from near the centre, either way around; more turns where there are more steps."""
    turns = rng.uniform(1.4, np.clip(len(progress) / 10, 1.6, 3.5))
    radius = rng.uniform(0.05, 0.15) + 0.9 * progress
    return radius[:, None] * circle(progress * turns, rng, coin(rng))


def spiral_inward(progress: Floats, rng: Rng) -> Floats:
    """Wind in to near the centre: an outward spiral drawn from its end."""
    return spiral_outward(1 - progress, rng)


def figure_eight(progress: Floats, rng: Rng) -> Floats:
    """Draw a lying eight from about its crossing, into either side, up or down first."""
    angle = rng.normal(0, 0.2) + 2 * np.pi * progress
    return np.stack([coin(rng) * np.sin(angle), coin(rng) * 0.6 * np.sin(2 * angle)], axis=1)


def loops(progress: Floats, rng: Rng) -> Floats:
    """Run to the right in anticlockwise loops, as in a row of e's; more where more steps."""
    turns = rng.uniform(1.8, np.clip(len(progress) / 8, 2, 5))
    curls = 0.4 * circle(progress * turns, rng, 1)
    curls[:, 0] += 2.4 * progress - 1.2
    return curls


def zigzag(progress: Floats, rng: Rng) -> Floats:
    """Go up and down between two sides, to the left or right; more teeth where more steps."""
    corners = rng.integers(4, min(len(progress) // 2, 9), endpoint=True)
    x = np.linspace(-1, 1, corners) * coin(rng)
    y = 0.5 * coin(rng) * (-1.0) ** np.arange(corners) + rng.normal(0, 0.06, corners)
    return polyline(np.stack([x, y], axis=1), progress)


def check_mark(progress: Floats, rng: Rng) -> Floats:
    """Go a short way down to the right, then a long way up."""
    corners = np.array([[-0.9, 0.1], [-0.4, -0.7], [0.9, 0.9]]) + rng.normal(0, 0.1, (3, 2))
    return polyline(corners, progress)


CLASSES: list[Draw] = [
    *(circle_clockwise, circle_anticlockwise, spiral_inward, spiral_outward),
    *(figure_eight, loops, zigzag, check_mark),
]


def coin(rng: Rng) -> int:
    """Toss for -1 or 1."""
    return int(rng.choice([-1, 1]))


def polyline(corners: Floats, progress: Floats) -> Floats:
    """Walk straight from corner to corner, evenly by length."""
    sides = np.linalg.norm(np.diff(corners, axis=0), axis=1)
    reached = np.concatenate([[0], np.cumsum(sides)]) / sides.sum()
    return np.stack([np.interp(progress, reached, axis) for axis in corners.T], axis=1)


def sway(steps: int, rng: Rng) -> Floats:
    """Draw a slow wave of up to three periods over the stroke, between about -1 and 1."""
    time = np.linspace(0, 1, steps)
    waves = [rng.uniform(0, 0.5) * np.sin(2 * np.pi * (k * time + rng.random())) for k in (1, 2, 3)]
    swaying: Floats = np.sum(waves, axis=0)
    return swaying


def draw_progress(steps: int, rng: Rng) -> Floats:
    """Draw how far along the stroke the pen is at each step: its speed changes, it never stops."""
    speed = np.exp(rng.uniform(0, 0.8) * sway(steps - 1, rng))
    progress: Floats = np.concatenate([[0], np.cumsum(speed)]) / speed.sum()
    return progress


def draw_pressure(steps: int, rng: Rng) -> Floats:
    """Draw the pen's pressure, 0 to 1: it rises, sways, falls."""
    time = np.linspace(0, 1, steps)
    touch = np.minimum(1, np.minimum(time, 1 - time) / rng.uniform(0.02, 0.2) + 0.2)
    wanted = rng.uniform(0.4, 0.9) * touch * (1 + 0.2 * sway(steps, rng))
    return np.clip(wanted + rng.normal(0, 0.01, steps), 0, 1)


def tremble(steps: int, rng: Rng) -> Floats:
    """Draw the hand's shake around the shape: a quick tremor and noise, (T, 2)."""
    step = np.arange(steps)[:, None]
    tremor = np.sin(2 * np.pi * (rng.uniform(0.08, 0.16, 2) * step + rng.random(2)))
    return rng.uniform(0, 0.04) * tremor + rng.normal(0, rng.uniform(0.005, 0.03), (steps, 2))


def draw_stroke(draw: Draw, rng: Rng) -> npt.NDArray[np.float32]:
    """Draw one stroke of a class, of any length, size and place: x, y, pressure a step, (T, 3)."""
    steps = round(np.exp(rng.uniform(np.log(SHORTEST), np.log(LONGEST))))
    points = draw(draw_progress(steps, rng), rng) + tremble(steps, rng)
    tilt = rng.uniform(-0.3, 0.3)
    turn = np.array([[np.cos(tilt), np.sin(tilt)], [-np.sin(tilt), np.cos(tilt)]])
    size = rng.uniform(0.6, 1.0) * rng.uniform(0.85, 1.15, 2)
    points = (points * size) @ turn + rng.uniform(-0.1, 0.1, 2)
    stroke = np.column_stack([points, draw_pressure(steps, rng)])
    return (np.round(stroke, DECIMALS) + 0.0).astype(np.float32)  # + 0.0 turns -0.0 into 0.0


def make_split(strokes_per_class: int, rng: Rng) -> Arrays:
    """Draw one split, shuffled, as the arrays of the file: values, offsets, labels."""
    names = np.repeat([draw.__name__ for draw in CLASSES], strokes_per_class)
    strokes = [draw_stroke(draw, rng) for draw in CLASSES for _ in range(strokes_per_class)]
    order = rng.permutation(len(strokes))
    lengths = [len(strokes[row]) for row in order]
    return {
        "values": np.concatenate([strokes[row] for row in order]),
        "offsets": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        "labels": names[order],
    }


def print_counts(split: str, arrays: Arrays) -> None:
    """Print how many strokes a split has and how long they are."""
    lengths = np.diff(arrays["offsets"])
    quantiles = "/".join(f"{q:.0f}" for q in np.quantile(lengths, [0, 0.25, 0.5, 0.75, 0.95, 1]))
    print(
        f"{split}: {len(lengths)} strokes, {len(np.unique(arrays['labels']))} classes, "
        f"steps min/25/50/75/95/max {quantiles}, mean {lengths.mean():.0f}"
    )


def print_baseline(splits: dict[str, Arrays]) -> None:
    """Print how well a random forest does on what's left without order (needs scikit-learn)."""
    from sklearn.ensemble import RandomForestClassifier

    def summarize(arrays: Arrays) -> Floats:
        """Describe each stroke by its length and the quantiles and spread of its columns."""
        strokes = np.split(arrays["values"], arrays["offsets"][1:-1])
        return np.array(
            [
                [
                    len(s),
                    *np.quantile(s, np.linspace(0, 1, 9), axis=0).ravel(),
                    *np.cov(s.T).ravel(),
                ]
                for s in strokes
            ]
        )

    forest = RandomForestClassifier(300, random_state=0)
    forest.fit(summarize(splits["train"]), splits["train"]["labels"])
    accuracy = forest.score(summarize(splits["test"]), splits["test"]["labels"])
    print(f"random forest on summaries without order: {accuracy:.1%} of test right")


def main() -> None:
    """Write the three files and print what they hold."""
    parser = argparse.ArgumentParser(description="Write the strokes data set.")
    parser.add_argument("--into", type=Path, default=HERE, help="folder to write to")
    parser.add_argument("--check", action="store_true", help="also print an order-free baseline")
    arguments = parser.parse_args()
    rng = np.random.default_rng(SEED)
    splits = {split: make_split(count, rng) for split, count in STROKES_PER_CLASS.items()}
    for split, arrays in splits.items():
        np.savez_compressed(
            arguments.into / f"{split}.npz",
            values=arrays["values"],
            offsets=arrays["offsets"],
            labels=arrays["labels"],
        )
        print_counts(split, arrays)
    if arguments.check:
        print_baseline(splits)


if __name__ == "__main__":
    main()
