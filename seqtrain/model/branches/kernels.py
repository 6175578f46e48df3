"""The kernel branch: a bank of fixed convolution kernels with a linear classifier, for series.

The kernels are MiniRocket's 84 kernels of 9 time steps, at several dilations. They read four views
of a series: values and differences, each scaled by train and by the series itself. A feature is the
fraction of a series' time steps at which the output of a kernel is above a bias. Zeros continue a
series beyond its ends. Nothing is padded or interpolated. If the lengths in train differ, some
dilations are proportional to the length of a series. The classifier is a ridge regression in closed
form.

Values are whole numbers below 2^17, so that the sums of a kernel are exact in float32. Features are
therefore equal to the bit in every batch, with any number of threads, and after export.

B sequences, T longest length, N packed time steps, C channels, D dilations, P features, K classes.

Reference:
    Dempster, Schmidt, Webb 2021, "MiniRocket", doi 10.1145/3447548.3467231.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from seqtrain.config.schema import BatchingConfig, ModelConfig
from seqtrain.engines.layout import Layout, Packed
from seqtrain.model.branches.branch import ForwardContext
from seqtrain.model.branches.logistic import Weights
from seqtrain.model.branches.solved import LinearBranch, SolverInput, class_matrix
from seqtrain.model.input_spec import InputSpec, KernelSizes
from seqtrain.model.inputs import SideInputs
from seqtrain.model.standardization import SeriesStandardization
from seqtrain.sequences.batch import collate
from seqtrain.sequences.plan import plan_in_order_of_length
from seqtrain.sequences.store import SequenceStore
from seqtrain.sequences.transfer import to_device
from seqtrain.tables.blocks import Array

TAPS, VIEWS = 9, 4
KERNELS = np.full((84, TAPS), -1.0, np.float32)
KERNELS[np.arange(84)[:, None], list(itertools.combinations(range(TAPS), 3))] = 2.0
FEATURES_PER_VIEW = 1200
"""Least number of features of a view for fixed dilations, and again for relative ones."""
MAX_CHANNELS = 9
"""Largest number of channels that one kernel reads."""
GRID, _LARGEST = 2.0**11, 2.0**17
"""Whole number to which one standard deviation is scaled, and the largest absolute value.

Outputs stay below 2^24, since 12 * MAX_CHANNELS * _LARGEST does.
"""
BIAS_ROWS, SCALE_ROWS, BIAS_STEPS = 24, 256, 2**13
"""Sizes of samples of train: sequences for biases, sequences for the scale of views, and steps.

The last one is the largest number of steps of the sequences for biases.
"""
MAX_ROWS = 4096
"""Largest number of sequences that the ridge regression learns from."""
LEAST_STD = 1e-6
"""A feature with at most this standard deviation counts as constant."""
PENALTIES = np.logspace(-4, 2, 13)
"""Penalties of the ridge regression, of which rows left out choose one."""
FACTORS = np.geomspace(0.2, 60, 60)
"""Factors of the scores of the ridge regression, of which rows left out choose one."""
GOLDEN_RATIO = 0.6180339887
"""Fractional part of the golden ratio. Its multiples modulo 1 are spread evenly over 0 to 1."""
MAX_NUMBERS, MAX_NUMBERS_ON_DEVICE = 2**19, 2**26
"""Largest number of values that are computed at once, on the CPU and on other devices.

The limit bounds the memory for long series. On the CPU the values fit its caches. A GPU needs large
chunks, because each chunk costs kernel launches.
"""


class Chunk(NamedTuple):
    """Adjacent rows of `SeriesRows` that are computed at once.

    Attributes:
        rows: the rows, (n,).
        first: the first series that has a row in the chunk.
        bags: first of these rows of each series that has one, counted from 0, or None for all rows
            of padded series.
    """

    rows: Tensor
    first: int = 0
    bags: Tensor | None = None


class SeriesRows:
    """Rows of a matrix that has the steps of a batch, series by series.

    Args:
        layout: layout of the steps. If it is `Padded`, the matrix has rows for padding, too.

    Attributes:
        series, step: series and time step of each row, (rows,).
        begins, lengths: first row and number of time steps of each series, (B,).
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.lengths = layout.lengths.squeeze(1)
        every = torch.arange(self.lengths.shape[0], device=self.lengths.device)
        if isinstance(layout, Packed):
            self.begins = self.lengths.cumsum(0) - self.lengths
            size = len(layout.places[0])
            self.series = every.repeat_interleave(self.lengths, output_size=size)
        else:
            longest = layout.valid.shape[0]
            self.begins = every * longest
            self.series = every.unsqueeze(1).expand(-1, longest).flatten()
        self.rows = torch.arange(self.series.shape[0], device=every.device)
        self.step = self.rows - self.begins[self.series]

    def arrange(self, steps: Tensor) -> Tensor:
        """Return the steps in the order of the rows, (rows, C)."""
        if not isinstance(self.layout, Packed):
            return steps.transpose(0, 1).flatten(0, 1)
        row, step = self.layout.places
        lengths = self.layout.lengths_on_cpu
        arranged = torch.empty_like(steps)
        arranged[to_device((lengths.cumsum(0) - lengths)[row] + step, steps.device)] = steps
        return arranged

    def chunks(self, size: int) -> Iterator[Chunk]:
        """Yield chunks of `size` rows. Padded series are one chunk, because ONNX has no loops."""
        if not isinstance(self.layout, Packed):
            yield Chunk(self.rows)
            return
        ends = self.layout.lengths_on_cpu.cumsum(0)  # on the CPU: known without waiting
        for begin in range(0, len(self.rows), size):
            rows = self.rows[begin : begin + size]
            bounds = torch.tensor([begin, begin + len(rows) - 1], device="cpu")
            first, last = torch.searchsorted(ends, bounds, right=True).tolist()
            yield Chunk(rows, first, (self.begins[first : last + 1] - begin).clamp(min=0))

    def count_above(self, outputs: Tensor, bias: Tensor, chunk: Chunk) -> Tensor:
        """Return in how many rows of each series the outputs exceed biases, (series, 84 * biases).

        Args:
            outputs: outputs of the kernels at the rows of a chunk, (n, 84).
            bias: biases of each kernel, (84, biases).
            chunk: the rows.
        """
        if chunk.bags is None:
            valid = self.step < self.lengths[self.series]
            above = (outputs.unsqueeze(2) > bias).flatten(1) & valid.unsqueeze(1)
            return above.to(bias.dtype).view(self.lengths.shape[0], -1, bias.numel()).sum(1)
        # Bias by bias: 84 kernels are adjacent, which is 1.5 to 4 times as fast.
        numbers = outputs.new_empty(len(outputs), *bias.T.shape)
        torch.gt(outputs.unsqueeze(1), bias.T.contiguous(), out=numbers)
        places = torch.arange(len(outputs), device=outputs.device)
        sums = functional.embedding_bag(places, numbers.flatten(1), chunk.bags, mode="sum")
        return sums.view(-1, *bias.T.shape).transpose(1, 2).flatten(1)


class KernelBranch(LinearBranch):
    """Branch whose logits are linear in the features of a bank of kernels.

    The median length of the series in train determines the dilations. Fixed dilations are the same
    for all series. Relative dilations grow in proportion to the length of a series.

    Args:
        sizes: numbers of channels and steps of the series of train.
        num_classes: number of classes.

    Attributes:
        lengths: number of time steps of train's shortest, median and longest series.
        length: number of time steps of train's median series.
        relative: kinds of dilations: (False,) for fixed ones only, or (False, True) for fixed ones
            and relative ones. Relative ones are only used if the lengths in train differ.
        dilations: the dilations, in time steps.
        channels: 1 for each channel that a kernel reads, else 0, (kinds, D, VIEWS, 84, C).
        gain: factor of each channel before rounding, (VIEWS, 1, C).
        bias: thresholds of each kernel's output, (kinds, D, VIEWS, 84, biases).
        pattern: the 84 kernels, (84, TAPS).
    """

    name = "kernels"
    title = "kernels"
    default_weight = 4.0
    channels: Tensor
    gain: Tensor
    bias: Tensor
    pattern: Tensor

    def __init__(self, sizes: KernelSizes, num_classes: int) -> None:
        shortest, length, longest = sizes.lengths
        relative = (False, True) if shortest < longest else (False,)
        most = np.log2(max((length - 1) / (TAPS - 1), 1.0))
        exponents = np.append(np.arange(0, most + 1e-9, 0.5), most)
        dilations = sorted({int(2**exponent + 1e-6) for exponent in exponents})
        shape = len(relative), len(dilations), VIEWS, len(KERNELS)
        biases = -(-FEATURES_PER_VIEW // (len(KERNELS) * len(dilations)))
        super().__init__(int(np.prod(shape)) * biases, num_classes)
        self.lengths, self.length = sizes.lengths, length
        self.relative, self.dilations = relative, dilations
        self.series = SeriesStandardization(sizes.channels, both=False, indicators=sizes.indicators)
        self.register_buffer("channels", torch.zeros(*shape, sizes.channels))
        self.register_buffer("gain", torch.zeros(VIEWS, 1, sizes.channels))
        self.register_buffer("bias", torch.zeros(*shape, biases))
        self.register_buffer("pattern", torch.from_numpy(KERNELS), persistent=False)

    @classmethod
    def build(cls, config: ModelConfig, spec: InputSpec) -> KernelBranch | None:
        """Return the branch, or None without model.kernels or the lengths of train's series."""
        if spec.kernels is None:
            return None
        return cls(spec.kernels, spec.num_classes)

    @torch.no_grad()
    def forward(
        self, steps: Tensor, layout: Layout, side: SideInputs, context: ForwardContext
    ) -> Tensor:
        """Return the logits, (B, K), without gradients; see `Branch.forward`.

        Autocast is switched off. The product is in float64: in float32, the order of thousands of
        sums, and so the logits of a row, would depend on the size of its batch.
        """
        with torch.autocast(steps.device.type, enabled=False):
            product = self.shares(steps, layout).double() @ self.weight.double()
            return product.to(self.intercept.dtype) + self.intercept

    @torch.no_grad()
    def features(self, store: SequenceStore) -> npt.NDArray[np.float32]:
        """Return the features of each row of a store, (B, P)."""
        matrix = np.zeros((len(store), len(self.weight)), np.float32)
        for rows in plan_in_order_of_length(store.lengths, BatchingConfig(max_tokens=16384)):
            batch = collate(store.__getitems__(rows)).to(self.weight.device)
            shares = self.shares(batch.packed.data, Packed.of(batch.packed))
            matrix[rows] = batch.restore(shares).cpu().numpy()
        return matrix

    def shares(self, steps: Tensor, layout: Layout) -> Tensor:
        """Return the features of a batch, (B, P), row by row of the layout.

        A feature is the fraction of a series' time steps at which the output of a kernel exceeds a
        bias.
        """
        bank = SeriesRows(layout)
        views = self._rounded_views(steps, layout, bank)
        counts = [self._counts(views, bank, *place) for place in np.ndindex(*self.bias.shape[:2])]
        return torch.cat(counts, dim=1) / layout.lengths

    def _counts(self, views: Tensor, bank: SeriesRows, kind: int, number: int) -> Tensor:
        """Return in how many steps the outputs at one dilation exceed each bias, (B, features).

        Args:
            views: result of `_rounded_views`.
            bank: order of the rows of the views.
            kind: 0 for fixed dilations, 1 for relative ones.
            number: index of the dilation.
        """
        weights, bias = self.weights(kind, number), self.bias[kind, number]
        numbers = MAX_NUMBERS if views.is_cpu else MAX_NUMBERS_ON_DEVICE
        chunks = list(bank.chunks(max(1, numbers // max(weights.shape[1], bias[0].numel()))))
        counts = []
        for chunk in chunks:
            taps = self._taps(bank, chunk.rows, kind, number)
            found = [
                bank.count_above(_convolved(views[view], taps, weights[view]), bias[view], chunk)
                for view in range(VIEWS)
            ]
            counts.append(torch.cat(found, dim=1))
        if len(chunks) == 1:
            return counts[0]
        total = counts[0].new_zeros(len(bank.lengths), counts[0].shape[1])
        for chunk, count in zip(chunks, counts, strict=True):
            total[chunk.first : chunk.first + len(count)] += count
        return total

    def weights(self, kind: int, number: int) -> Tensor:
        """Return the weights of the kernels at one dilation, (VIEWS, TAPS * C, 84).

        Args:
            kind: 0 for fixed dilations, 1 for relative ones.
            number: index of the dilation.
        """
        chosen = self.channels[kind, number].unsqueeze(2)
        return (self.pattern.unsqueeze(2) * chosen).flatten(2).transpose(1, 2).contiguous()

    def _views(self, steps: Tensor, layout: Layout, bank: SeriesRows) -> Tensor:
        """Return the views of a batch, (VIEWS, rows, C), with its rows in the order of a bank.

        The views are: values as scaled by train, values standardized per series, and the
        differences between consecutive time steps of both.
        """
        width = self.channels.shape[-1]
        both = steps[..., :width], self.series(steps, layout)[..., :width]
        values = torch.stack([bank.arrange(view) for view in both])
        before = torch.cat((values[:, :1], values[:, :-1]), dim=1)
        is_first = (bank.step == 0).unsqueeze(1)
        return torch.cat((values, torch.where(is_first, 0, values - before)))

    def _rounded_views(self, steps: Tensor, layout: Layout, bank: SeriesRows) -> Tensor:
        """Return the views as whole numbers, with a row of zeros at the end; see `_views`."""
        scaled = self._views(steps, layout, bank) * self.gain
        return functional.pad(scaled.round().clamp(-_LARGEST, _LARGEST), (0, 0, 0, 1))

    def _taps(self, bank: SeriesRows, rows: Tensor, kind: int, number: int) -> Tensor:
        """Return the rows of a view that the kernels of a dilation read for each output.

        Beyond the ends of a series this is the row of zeros. A relative dilation is scaled by the
        length of the series, and rounded to a whole number of at least 1.

        Args:
            bank: order of the rows of the views.
            rows: row at the center of each output, (n,).
            kind: 0 for fixed dilations, 1 for relative ones.
            number: index of the dilation.

        Returns:
            Rows, (n, TAPS).
        """
        series = bank.series[rows]
        lengths, begins = (each[series].unsqueeze(1) for each in (bank.lengths, bank.begins))
        reach: Tensor | int = self.dilations[number]
        if self.relative[kind]:
            doubled = 2 * reach * lengths + self.length
            reach = torch.div(doubled, 2 * self.length, rounding_mode="floor").clamp(min=1)
        offsets = torch.arange(TAPS, device=rows.device) - TAPS // 2
        read = bank.step[rows].unsqueeze(1) + offsets * reach
        inside = (read >= 0) & (read < lengths)
        return torch.where(inside, read + begins, bank.series.shape[0])

    def solve(self, given: SolverInput) -> None:
        """Draw the channels of the kernels, and fit gains, biases and the linear classifier.

        The classifier is a ridge regression on at most `MAX_ROWS` rows, a random sample. Rows left
        out of it one by one choose its penalty, and the factor that turns its scores into logits.
        """
        store, weights = given.store, given.weights
        draw, rows = np.random.default_rng([given.seed, len(KERNELS)]), np.arange(len(store))
        if len(rows) > MAX_ROWS:
            rows = np.sort(draw.choice(rows, MAX_ROWS, replace=False))
            store, weights = store.__getitems__(rows), weights[rows]
        self._fit_bank(store, draw)
        targets = class_matrix(store.labels, self.weight.shape[1])
        is_multi_label = store.labels.ndim == 2
        found = fit_ridge(self.features(store), targets, weights, multi_label=is_multi_label)
        self.keep_coefficients(*found)

    @torch.no_grad()
    def _fit_bank(self, store: SequenceStore, draw: np.random.Generator) -> None:
        """Draw the channels of all kernels, and fit gains and biases to random rows."""
        self._fit_gain(*self._sample(store, SCALE_ROWS, draw))
        for kind, number in np.ndindex(*self.bias.shape[:2]):
            self._draw_channels(kind, number, draw)
            self._fit_biases(*self._sample(store, BIAS_ROWS, draw), kind, number, draw)

    def _sample(
        self, store: SequenceStore, most: int, draw: np.random.Generator
    ) -> tuple[Tensor, Packed]:
        """Return the steps of at most `most` random rows, on the device of the branch."""
        some = draw.choice(np.arange(len(store)), min(len(store), most), replace=False)
        packed = collate(store.__getitems__(some)).to(self.weight.device).packed
        return packed.data, Packed.of(packed)

    def _fit_gain(self, steps: Tensor, layout: Packed) -> None:
        """Set `gain`, the factor of each view before rounding, from a sample of series.

        For values, the factor is GRID. For differences, GRID is divided by the root mean square of
        the channel in the sample, if this isn't 0.
        """
        views = self._views(steps, layout, SeriesRows(layout))
        squares = views.cpu().double().square().mean(1, keepdim=True)
        squares[: VIEWS // 2] = 1
        self.gain[:] = GRID / torch.where(squares > 0, squares.sqrt(), 1)

    def _draw_channels(self, kind: int, number: int, draw: np.random.Generator) -> None:
        """Draw the channels that each kernel of a dilation reads, and set `channels`.

        The number of channels is 2**x, rounded down, with a uniformly distributed x. It is at most
        `MAX_CHANNELS`.

        Args:
            kind: 0 for fixed dilations, 1 for relative ones.
            number: index of the dilation.
            draw: generator of random numbers.
        """
        chosen = self.channels[kind, number].view(-1, self.channels.shape[-1])
        chosen.zero_()
        width = chosen.shape[1]
        most = np.log2(min(width, MAX_CHANNELS) + 1)
        for row, exponent in enumerate(draw.uniform(0, most, len(chosen))):
            chosen[row, draw.permutation(width)[: int(2**exponent)]] = 1

    def _fit_biases(
        self, steps: Tensor, layout: Packed, kind: int, number: int, draw: np.random.Generator
    ) -> None:
        """Set the biases of a dilation to quantiles of the kernels' outputs for a sample."""
        bank = SeriesRows(layout)
        views = self._rounded_views(steps, layout, bank)
        centers = np.arange(len(bank.series))
        if len(centers) > BIAS_STEPS:
            centers = np.sort(draw.choice(centers, BIAS_STEPS, replace=False))
        taps = self._taps(bank, torch.from_numpy(centers).to(views.device), kind, number)
        weights = self.weights(kind, number)
        count = self.bias[0, 0, 0].numel()
        quantiles = (number * count + np.arange(count) + 1) * GOLDEN_RATIO % 1
        ranks = np.rint(quantiles * (len(centers) - 1)).astype(np.int64).reshape(len(KERNELS), -1)
        for view in range(VIEWS):
            outputs = _convolved(views[view], taps, weights[view]).T.cpu().numpy()
            ordered = np.take_along_axis(np.sort(outputs), ranks, 1)  # torch sorts more slowly
            self.bias[kind, number, view] = torch.from_numpy(ordered)


def _convolved(view: Tensor, taps: Tensor, weights: Tensor) -> Tensor:
    """Return the outputs of 84 kernels at n positions of a view.

    Shape:
        view: (N + 1, C). taps: rows of the view that each output reads, (n, TAPS). weights:
        (TAPS * C, 84). Returns: (n, 84).
    """
    return view.index_select(0, taps.flatten()).view(-1, weights.shape[0]) @ weights


def fit_ridge(
    features: npt.NDArray[np.float32],
    targets: npt.NDArray[np.bool_],
    weights: Weights,
    *,
    multi_label: bool,
) -> tuple[Array, Array]:
    """Fit a linear classifier by ridge regression, and scale its scores to logits.

    Scikit-learn predicts each row by a model without that row. The penalty, and the factor of the
    scores, have the least log loss of these predictions.

    Args:
        features: features of each row, (B, P).
        targets: True for each class that a row has, (B, K).
        weights: weight of each row, (B,).
        multi_label: True if a row may have several classes or none.

    Returns:
        Coefficients, (K, P), and intercepts, (K,), of the logits.
    """
    from sklearn.linear_model import RidgeCV

    signs = 2.0 * targets - 1
    mean = np.average(features, axis=0, weights=weights)
    spread = np.sqrt(np.average(np.square(features - mean), axis=0, weights=weights))
    varies = spread > LEAST_STD
    if not varies.any():
        return np.zeros((targets.shape[1], len(mean))), np.average(signs, 0, weights)
    # A constant feature has no influence. The penalty means the same for any number of others.
    spread = np.where(varies, spread * np.sqrt(varies.sum()), np.inf)
    losses: list[tuple[float, float]] = []

    def score(_model: object, scores: Array, _targets: object, **_weights: object) -> float:
        losses.append(_least_log_loss(scores, targets, weights, multi_label=multi_label))
        return -losses[-1][0]

    solver = RidgeCV(PENALTIES, scoring=score)
    solver.fit((features - mean) / spread, signs, sample_weight=weights)
    _, factor = min(losses)
    coefficients = factor * solver.coef_ / spread
    return coefficients, factor * solver.intercept_ - coefficients @ mean


def _least_log_loss(
    scores: Array, targets: npt.NDArray[np.bool_], weights: Weights, *, multi_label: bool
) -> tuple[float, float]:
    """Return the least log loss over `FACTORS` of scores, and its factor.

    Targets are smoothed, as in `fit_temperature`. So scores that are all right stay finite.
    """
    smoothing = 1 / (len(scores) + 2)
    classes = 2 if multi_label else targets.shape[1]
    smooth = torch.from_numpy(targets * (1 - smoothing) + smoothing / classes)
    of_rows = torch.from_numpy(weights / weights.sum())
    found = []
    for factor in FACTORS.tolist():
        logits = torch.from_numpy(factor * scores)
        if multi_label:
            losses = functional.binary_cross_entropy_with_logits(logits, smooth, reduction="none")
            losses = losses.mean(1)
        else:
            losses = functional.cross_entropy(logits, smooth, reduction="none")
        found.append((float(losses @ of_rows), factor))
    return min(found)
