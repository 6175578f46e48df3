"""Which weights of tokens are the most faithful: deletion curves of a run's answers.

    python tests/benchmarks/explanations.py RUN [ROWS]

Steps are left out, the heaviest first, and the mean probability of the answer is watched: the
faster it falls, the better the weights. Prints the mean over 0 %, 10 % … 90 % of the steps left
out, for occlusion, integrated gradients (50 points from the zero vector, of the recurrent part
alone) and a random order. RUN is a text or token model without n-grams and subwords.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import torch
from torch.func import functional_call
from torch.nn.utils.rnn import PackedSequence

from seqtrain.api.evaluate import load_labelled
from seqtrain.data.store import SequenceStore
from seqtrain.evaluation.logits import predict_logits
from seqtrain.evaluation.occlusion import step_weights

POINTS, SHARES = 50, 10
CPU = torch.device("cpu")


def integrated_gradients(model: torch.nn.Module, ids: np.ndarray, answer: int) -> list[float]:
    """Return each step's share of the answer's log-probability above that of zero vectors."""
    vectors = model.embedding.weight.detach()[torch.from_numpy(ids).long()]  # type: ignore[union-attr, index]
    steps = torch.arange(1, len(ids) + 1)
    packed = PackedSequence(steps, torch.ones_like(steps))
    total = torch.zeros_like(vectors)
    for point in (torch.arange(POINTS) + 0.5) / POINTS:
        scaled = (point * vectors).requires_grad_()
        table = torch.cat((torch.zeros_like(scaled[:1]), scaled))
        logits = functional_call(model, {"embedding.weight": table}, (packed,))
        total += torch.autograd.grad(logits.log_softmax(1)[0, answer], scaled)[0]
    return ((total / POINTS) * vectors).sum(1).tolist()


def curve(
    model: torch.nn.Module, ids: np.ndarray, weights: list[float], answer: int
) -> list[float]:
    """Return the answer's probability with ever more of the heaviest steps left out."""
    order = np.argsort(-np.array(weights), kind="stable")
    kept = [np.sort(order[len(ids) * share // SHARES :]) for share in range(SHARES)]
    nothing = np.zeros(SHARES, dtype=np.int64)
    store = SequenceStore(
        np.concatenate([ids[places] for places in kept]),
        np.cumsum([0, *map(len, kept)]),
        nothing,
        nothing,
    )
    found: list[float] = predict_logits(model, store, CPU).softmax(1)[:, answer].tolist()  # type: ignore[arg-type]
    return found


def main() -> None:
    found = load_labelled(sys.argv[1], device="cpu")
    store, model = found.store, found.classifier.network
    numbers = np.random.default_rng(0)
    rows = numbers.permutation(np.flatnonzero(store.lengths >= SHARES))
    rows = rows[: int(sys.argv[2]) if len(sys.argv) > 2 else 100]
    answers = predict_logits(model, store, CPU).argmax(1).tolist()
    slow = model.computed_by(engine="torch")
    orders: dict[str, Callable[[int], list[float]]] = {
        "occlusion": lambda row: step_weights(model, store, row, CPU),
        "integrated gradients": lambda row: integrated_gradients(slow, store[row][0], answers[row]),
        "random order": lambda row: numbers.random(int(store.lengths[row])).tolist(),
    }
    for name, weights in orders.items():
        curves = [curve(model, store[row][0], weights(row), answers[row]) for row in rows.tolist()]
        mean = np.mean(curves, axis=0)
        print(f"{name:<22}{mean.mean():.3f}   {' '.join(f'{p:.2f}' for p in mean)}")


if __name__ == "__main__":
    main()
