"""Variants measured in turns, so that noise of the machine hits all alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from seqtrain.comparison.worker_pool import Worker

TURN = 0.15
"""Seconds of a turn, or one batch where that takes longer."""
PATIENCE = 10.0
"""Seconds that a first batch may take in any case, and a later one beyond the deadline."""
MARGIN = 1.5
"""How much longer than the longest so far a turn may take."""


def take_turns(
    workers: Iterable[Worker],
    mode: str,
    deadline: float,
    before: Callable[[Worker], None] = lambda worker: None,
) -> None:
    """Measure variants until the time is up: always the one measured the shortest so far.

    Ratios of speeds measured so can be trusted where the speeds themselves can't. Each gets one
    batch at first, and another if that took less than a turn, as it only warms up. Afterwards one
    whose turn would hardly end before the deadline gets no more.

    Args:
        workers: one per variant.
        mode: training or prediction.
        deadline: of time.monotonic(); only first batches may go beyond, by PATIENCE.
        before: is called before every turn.
    """
    running = [worker for worker in workers if not worker.failure]
    while running:
        worker = min(running, key=lambda w: sum(turn.seconds for turn in w.turns[mode]))
        seconds = [turn.seconds for turn in worker.turns[mode]]
        left = deadline - time.monotonic()
        warming_up = len(seconds) < 2 and sum(seconds) <= TURN
        if warming_up or MARGIN * max(seconds) < left:
            before(worker)
            amount, limit = min(TURN, left), left + PATIENCE
            if warming_up:
                amount, limit = 0.0, max(PATIENCE, left / len(running))
            worker.measure(mode, amount, limit)
            if not worker.failure:
                continue
        running.remove(worker)
