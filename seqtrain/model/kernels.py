"""A bank of fixed convolution kernels with a linear classifier, a branch for series.

MiniRocket's 84 kernels of 9 time steps at several dilations, in four views of a series: scaled by
train and by itself, as values and as differences. A feature is the share of a series' own time
steps where a kernel's output is above a bias; zeros stand beyond its ends, and nothing is padded or
interpolated. Where train's lengths differ, dilations also come in proportion to a series' length.
The classifier is a ridge regression in closed form; leave-one-out chooses its penalty.

Values are whole numbers below 2^17, so that sums of a kernel are exact in float32: a feature is the
same to the bit in every batch, with any number of threads, and exported.

B batch, N time steps of all sequences, C channels, D dilations, P features, K classes.

Reference:
    Dempster, Schmidt, Webb 2021, "MiniRocket", doi 10.1145/3447548.3467231.
"""

import hashlib
import itertools
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from seqtrain.config.schema import BatchingConfig
from seqtrain.data.batch import collate
from seqtrain.data.plan import plan_in_order_of_length
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.model.packing import lengths_of, rows_and_steps
from seqtrain.model.standardization import SeriesStandardization

TAPS, VIEWS = 9, 4
KERNELS = np.full((84, TAPS), -1.0, np.float32)
KERNELS[np.arange(84)[:, None], list(itertools.combinations(range(TAPS), 3))] = 2.0
PER_BLOCK = 1200
"""Features of a view at one kind of dilation, about."""
MOST_CHANNELS = 9
"""Channels that a kernel adds up, at most."""
GRID, LARGEST = 2.0**11, 2.0**17
"""Whole numbers that a deviation has, and the largest: 12 * MOST_CHANNELS * LARGEST < 2^24."""
BIAS_ROWS, SCALE_ROWS, BIAS_STEPS = 24, 256, 2**13
"""Sequences of train that biases and the scale of differences come from; time steps of them."""
MOST_ROWS = 4096
"""Sequences of train that the ridge regression learns from, at most."""
LEAST_STD, SMALLEST_VALUE = 1e-6, 1e-10
"""Deviation of a feature, and eigenvalue of them as a share of the largest, that count as 0."""
GOLDEN = 0.6180339887
"""Multiples of it spread evenly over 0 to 1."""
PENALTIES = torch.logspace(-4, 2, 13, dtype=torch.float64, device="cpu").tolist()
FACTORS = np.geomspace(0.2, 60, 60).tolist()
"""What scores may be multiplied by, 1 / temperature."""
CELLS = 2**19
"""Numbers that are computed at once: memory stays flat at any length."""
REMEMBERED = 1024
"""Batches whose logits are kept: validation is scored after each epoch."""


@dataclass(frozen=True)
class KernelSizes:
    """What a bank's shapes follow from.

    With indicators, C more columns say which values are missing. Lengths are the time steps of
    train's shortest, median and longest sequence.
    """

    channels: int
    indicators: bool
    lengths: tuple[int, int, int]


class KernelBank(nn.Module):
    """Logits of K classes, linear in the features of a bank of kernels. `fit` it, or load it.

    Dilations are those of the median sequence; `relative` ones are in proportion to the length.
    """

    channels: Tensor
    gain: Tensor
    bias: Tensor
    mean: Tensor
    weight: Tensor
    intercept: Tensor
    pattern: Tensor

    def __init__(self, sizes: KernelSizes, num_classes: int) -> None:
        super().__init__()
        shortest, self.length, longest = sizes.lengths
        self.relative = (False, True) if shortest < longest else (False,)
        most = np.log2(max((self.length - 1) / (TAPS - 1), 1.0))
        exponents = np.append(np.arange(0, most + 1e-9, 0.5), most)
        self.dilations = sorted({int(2**exponent + 1e-6) for exponent in exponents})
        self.series = SeriesStandardization(sizes.channels, both=False, indicators=sizes.indicators)
        count = len(KERNELS)
        shape = len(self.relative), len(self.dilations), VIEWS, count
        biases = -(-PER_BLOCK // (count * len(self.dilations)))
        features = int(np.prod(shape)) * biases
        empty = {
            "channels": torch.zeros(*shape, sizes.channels),
            "gain": torch.zeros(VIEWS, 1, sizes.channels),
            "bias": torch.zeros(*shape, biases),
            "mean": torch.zeros(features),
            "weight": torch.zeros(features, num_classes),
            "intercept": torch.zeros(num_classes),
        }
        for name, tensor in empty.items():
            self.register_buffer(name, tensor)
        self.register_buffer("pattern", torch.from_numpy(KERNELS), persistent=False)
        self._known: dict[bytes, Tensor] = {}

    @torch.no_grad()
    def forward(self, packed: PackedSequence) -> Tensor:
        """Return logits (B, K) of packed feature vectors (N, C); batches seen before are cached."""
        arrays = packed.batch_sizes.numpy(), packed.data.detach().cpu().numpy()
        key = hashlib.sha256(b"".join(array.tobytes() for array in arrays)).digest()
        if key not in self._known:
            if len(self._known) == REMEMBERED:
                self._known.clear()
            with torch.autocast(packed.data.device.type, enabled=False):
                shares = self.features(packed)
                self._known[key] = (shares - self.mean) @ self.weight + self.intercept
        return self._known[key]

    def features(self, packed: PackedSequence) -> Tensor:
        """Return the share of each sequence's time steps above each bias, (B, P)."""
        views, lengths = self._whole_views(packed)
        found = self.bias.new_zeros(len(lengths), *self.bias.shape[:3], self.bias[0, 0, 0].numel())
        size = max(1, CELLS // max(TAPS * views.shape[2], found.shape[-1]))
        begins = lengths.cumsum(0) - lengths
        for kind, number in np.ndindex(*self.bias.shape[:2]):
            weights = self.weights(kind, number)
            for begin in range(0, views.shape[1] - 1, size):
                every = torch.arange(min(size, views.shape[1] - 1 - begin), device=views.device)
                taps, row = self._taps(every + begin, lengths, kind, number)
                first, end = int(row[0]), int(row[-1]) + 1
                bags = (begins[first:end] - begin).clamp(min=0)
                for view in range(VIEWS):
                    outputs = _convolved(views[view], taps, weights[view]).unsqueeze(2)
                    bias = self.bias[kind, number, view]
                    above = outputs.new_empty(len(row), *bias.shape)
                    torch.gt(outputs, bias, out=above)
                    counts = functional.embedding_bag(every, above.flatten(1), bags, mode="sum")
                    found[first:end, kind, number, view] += counts
        return found.flatten(1) / lengths.unsqueeze(1)

    def weights(self, kind: int, number: int) -> Tensor:
        """Return the kernels of a kind of dilation and a dilation, (VIEWS, TAPS * C, 84)."""
        chosen = self.channels[kind, number].unsqueeze(2)
        return (self.pattern.unsqueeze(2) * chosen).flatten(2).transpose(1, 2).contiguous()

    def _views(self, packed: PackedSequence) -> tuple[Tensor, Tensor]:
        """Return the views row by row, (VIEWS, N, C), and the lengths of the packed rows, (B,)."""
        data, width = packed.data, self.channels.shape[-1]
        row, step = rows_and_steps(packed.batch_sizes)
        lengths = lengths_of(packed.batch_sizes)
        begins = lengths.cumsum(0) - lengths
        both = torch.stack((data[:, :width], self.series(packed).data[:, :width]))
        values = torch.empty_like(both)
        values[:, (begins[row] + step).to(data.device)] = both
        changes = values.diff(dim=1, prepend=values[:, :1])
        changes[:, begins.to(data.device)] = 0
        return torch.cat((values, changes)), lengths.to(data.device)

    def _whole_views(self, packed: PackedSequence) -> tuple[Tensor, Tensor]:
        """Return the same in whole numbers, with a time step of zeros behind all."""
        views, lengths = self._views(packed)
        whole = (views * self.gain).round().clamp(-LARGEST, LARGEST)
        return functional.pad(whole, (0, 0, 0, 1)), lengths

    def _taps(
        self, steps: Tensor, lengths: Tensor, kind: int, number: int
    ) -> tuple[Tensor, Tensor]:
        """Return what kernels read at steps (n,): (n, TAPS), N beyond a row's ends; and rows."""
        dilation, ends = self.dilations[number], lengths.cumsum(0)
        row = torch.searchsorted(ends, steps, right=True)
        reach: Tensor | int = dilation
        if self.relative[kind]:
            twice = (2 * dilation * lengths + self.length) // (2 * self.length)
            reach = twice.clamp(min=1)[row].unsqueeze(1)
        offsets = torch.arange(TAPS, device=steps.device) - TAPS // 2
        taps = steps.unsqueeze(1) + offsets * reach
        inside = (taps >= (ends - lengths)[row].unsqueeze(1)) & (taps < ends[row].unsqueeze(1))
        return torch.where(inside, taps, ends[-1]), row

    @torch.no_grad()
    def fit(self, train: SequenceStore, seed: int) -> None:
        """Draw the kernels' channels, and fit biases and classifier on labelled series."""
        draw, rows = np.random.default_rng([seed, len(KERNELS)]), np.arange(len(train))
        if len(rows) > MOST_ROWS:
            rows = np.sort(draw.choice(rows, MOST_ROWS, replace=False))
        self._known.clear()
        self._fit_gain(self._drawn(train, rows, SCALE_ROWS, draw))
        for kind, number in np.ndindex(*self.bias.shape[:2]):
            self._draw_channels(kind, number, draw)
            self._fit_biases(self._drawn(train, rows, BIAS_ROWS, draw), kind, number, draw)
        shares = self.mean.new_zeros(len(rows), len(self.mean))
        for some in plan_in_order_of_length(train.lengths[rows], BatchingConfig(max_tokens=16384)):
            batch = collate(train.__getitems__(rows[some])).to(shares.device)
            shares[torch.from_numpy(some)] = batch.restore(self.features(batch.packed))
        std = shares.std(0, correction=0).view(*self.bias.shape[:3], -1)
        varies = std > LEAST_STD
        number = varies.sum((1, 3), keepdim=True) * len(self.relative) * VIEWS
        divisor = torch.where(varies, std * number.sqrt(), torch.inf).flatten()
        self.mean[:] = shares.mean(0)
        shares = (shares - self.mean) / divisor
        labels = torch.from_numpy(train.labels[rows])
        weight, self.intercept[:] = ridge(shares.cpu(), labels, len(self.intercept))
        self.weight[:] = weight.to(divisor) / divisor.unsqueeze(1)

    def _drawn(
        self, train: SequenceStore, rows: Ints, most: int, draw: np.random.Generator
    ) -> PackedSequence:
        some = draw.choice(rows, min(len(rows), most), replace=False)
        return collate(train.__getitems__(some)).to(self.mean.device).packed

    def _fit_gain(self, packed: PackedSequence) -> None:
        """Scale values as they are, and differences to a deviation of 1."""
        squares = self._views(packed)[0].cpu().double().square().mean(1, keepdim=True)
        squares[: VIEWS // 2] = 1
        self.gain[:] = GRID / torch.where(squares > 0, squares.sqrt(), 1)

    def _draw_channels(self, kind: int, number: int, draw: np.random.Generator) -> None:
        """Let each kernel add up some channels: few or many with equal probability."""
        chosen = self.channels[kind, number].view(-1, self.channels.shape[-1])
        chosen.zero_()
        width = chosen.shape[1]
        most = np.log2(min(width, MOST_CHANNELS) + 1)
        for row, exponent in enumerate(draw.uniform(0, most, len(chosen))):
            chosen[row, draw.permutation(width)[: int(2**exponent)]] = 1

    def _fit_biases(
        self, packed: PackedSequence, kind: int, number: int, draw: np.random.Generator
    ) -> None:
        views, lengths = self._whole_views(packed)
        steps = np.arange(views.shape[1] - 1)
        if len(steps) > BIAS_STEPS:
            steps = np.sort(draw.choice(steps, BIAS_STEPS, replace=False))
        taps, _ = self._taps(torch.from_numpy(steps).to(views.device), lengths, kind, number)
        weights = self.weights(kind, number)
        count = self.bias[0, 0, 0].numel()
        quantiles = (number * count + np.arange(count) + 1) * GOLDEN % 1
        ranks = np.rint(quantiles * (len(steps) - 1)).astype(np.int64).reshape(len(KERNELS), -1)
        for view in range(VIEWS):
            outputs = _convolved(views[view], taps, weights[view]).T.cpu().numpy()
            ordered = np.take_along_axis(np.sort(outputs), ranks, 1)  # faster than torch's
            self.bias[kind, number, view] = torch.from_numpy(ordered)


def _convolved(view: Tensor, taps: Tensor, weights: Tensor) -> Tensor:
    """Return the outputs of 84 kernels: (N + 1, C), (n, TAPS), (TAPS * C, 84) -> (n, 84)."""
    return view.index_select(0, taps.flatten()).view(len(taps), -1) @ weights


def ridge(features: Tensor, labels: Tensor, num_classes: int) -> tuple[Tensor, Tensor]:
    """Fit a linear classifier with the penalty and the factor of least leave-one-out log loss.

    Labels count as right with a probability just below 1, as in `fit_temperature`. Features have a
    mean of 0, on the CPU.

    Shape:
        features: (n, P). labels: (n,), or (n, K), where a sequence may have several. Returns:
        weight (P, K), intercept (K,).
    """
    rows, columns = features.double(), features.shape[1]
    multi_label = labels.ndim == 2
    has = labels > 0 if multi_label else functional.one_hot(labels, num_classes)
    targets, smooth = 2.0 * has.double() - 1, 1 / (len(labels) + 2)
    mean = targets.mean(0)
    if len(rows) <= columns:
        values, basis = torch.linalg.eigh(rows @ rows.T)
    else:
        values, basis = torch.linalg.eigh(rows.T @ rows)
    kept = values > SMALLEST_VALUE * values[-1].clamp(min=SMALLEST_VALUE)
    values, basis = values[kept], basis[:, kept]
    if len(rows) > columns:
        basis = rows @ basis / values.sqrt()
    turned, best = basis.T @ (targets - mean), None
    for penalty in PENALTIES:
        kept_share = values / (values + penalty)
        leverage = 1 / len(rows) + basis.square() @ kept_share
        residual = targets - mean - basis @ (kept_share.unsqueeze(1) * turned)
        left_out = targets - residual / (1 - leverage).clamp(min=SMALLEST_VALUE).unsqueeze(1)
        for factor in FACTORS:
            if multi_label:
                true = has * (1 - smooth) + smooth / 2
                loss = float(
                    functional.binary_cross_entropy_with_logits(factor * left_out, true.double())
                )
            else:
                given = factor * left_out, labels
                loss = float(functional.cross_entropy(*given, label_smoothing=smooth))
            if best is None or loss < best[0]:
                best = loss, penalty, factor
    assert best is not None
    _, penalty, factor = best
    weight = rows.T @ (basis @ (turned / (values + penalty).unsqueeze(1)))
    return (factor * weight).to(features), (factor * mean).to(features)
