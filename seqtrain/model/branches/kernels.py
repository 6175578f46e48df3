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

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from seqtrain.config.schema import BatchingConfig, ModelConfig
from seqtrain.engines.layout import (
    Layout,
    Packed,
    Padded,
    lengths_of,
    rows_and_steps,
)
from seqtrain.model.branches.branch import Branch, ForwardContext
from seqtrain.model.input_spec import InputSpec, KernelSizes
from seqtrain.model.inputs import SideInputs
from seqtrain.model.ridge import ridge
from seqtrain.model.standardization import SeriesStandardization
from seqtrain.sequences.batch import Batch, collate
from seqtrain.sequences.plan import plan_in_order_of_length
from seqtrain.sequences.store import Ints, SequenceStore
from seqtrain.sequences.transfer import to_device

TAPS, VIEWS = 9, 4
KERNELS = np.full((84, TAPS), -1.0, np.float32)
KERNELS[np.arange(84)[:, None], list(itertools.combinations(range(TAPS), 3))] = 2.0
FEATURES_PER_VIEW = 1200
"""Least number of features of a view for fixed dilations, and again for relative ones."""
MAX_CHANNELS = 9
"""Largest number of channels that one kernel reads."""
GRID, LARGEST = 2.0**11, 2.0**17
"""Whole number to which one standard deviation is scaled, and the largest absolute value.

Outputs stay below 2^24, since 12 * MAX_CHANNELS * LARGEST does.
"""
BIAS_ROWS, SCALE_ROWS, BIAS_STEPS = 24, 256, 2**13
"""Sizes of samples of train: sequences for biases, sequences for the scale of views, and steps.

The last one is the largest number of steps of the sequences for biases.
"""
MAX_ROWS = 4096
"""Largest number of sequences that the ridge regression learns from."""
LEAST_STD = 1e-6
"""A feature with at most this standard deviation counts as constant."""
GOLDEN_RATIO = 0.6180339887
"""Fractional part of the golden ratio. Its multiples modulo 1 are spread evenly over 0 to 1."""
MAX_NUMBERS, MAX_NUMBERS_ON_DEVICE = 2**19, 2**26
"""Largest number of values that are computed at once, on the CPU and on other devices.

The limit bounds the memory for long series. On the CPU the values fit its caches. A GPU needs large
chunks, because each chunk costs kernel launches.
"""


class KernelBranch(Branch):
    """Branch whose logits are linear in the features of a bank of kernels.

    The median length of the series in train determines the dilations. Fixed dilations are the same
    for all series. Relative dilations grow in proportion to the length of a series.

    Args:
        sizes: facts about the series of train.
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
        mean: mean of each feature in train, (P,).
        weight: weight of each feature for each class, (P, K).
        intercept: (K,).
        pattern: the 84 kernels, (84, TAPS).
    """

    name = "kernels"
    fixed = True
    default_weight = 4.0
    channels: Tensor
    gain: Tensor
    bias: Tensor
    mean: Tensor
    weight: Tensor
    intercept: Tensor
    pattern: Tensor

    def __init__(self, sizes: KernelSizes, num_classes: int) -> None:
        super().__init__()
        self.lengths = shortest, self.length, longest = sizes.lengths
        self.relative = (False, True) if shortest < longest else (False,)
        most = np.log2(max((self.length - 1) / (TAPS - 1), 1.0))
        exponents = np.append(np.arange(0, most + 1e-9, 0.5), most)
        self.dilations = sorted({int(2**exponent + 1e-6) for exponent in exponents})
        self.series = SeriesStandardization(sizes.channels, both=False, indicators=sizes.indicators)
        count = len(KERNELS)
        shape = len(self.relative), len(self.dilations), VIEWS, count
        biases = -(-FEATURES_PER_VIEW // (count * len(self.dilations)))
        features = int(np.prod(shape)) * biases
        self.register_buffer("channels", torch.zeros(*shape, sizes.channels))
        self.register_buffer("gain", torch.zeros(VIEWS, 1, sizes.channels))
        self.register_buffer("bias", torch.zeros(*shape, biases))
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("weight", torch.zeros(features, num_classes))
        self.register_buffer("intercept", torch.zeros(num_classes))
        self.register_buffer("pattern", torch.from_numpy(KERNELS), persistent=False)

    @classmethod
    def build(cls, config: ModelConfig, spec: InputSpec) -> KernelBranch | None:
        """Return the branch, or None without model.kernels or the lengths of train's series."""
        return None if spec.kernels is None else cls(spec.kernels, spec.num_classes)

    def initialize(self, generator: torch.Generator) -> None:
        """Do nothing: all buffers except `pattern` are zero until `fit` sets them."""

    @torch.no_grad()
    def forward(
        self, steps: Tensor, layout: Layout, side: SideInputs, context: ForwardContext
    ) -> Tensor:
        """Return the logits, (B, K), without gradients; see `Branch.forward`.

        Autocast is switched off.
        """
        if isinstance(layout, Padded):
            return self._padded_logits(steps, layout)
        assert side.batch is not None
        with torch.autocast(steps.device.type, enabled=False):
            return (self.features(side.batch) - self.mean) @ self.weight + self.intercept

    def features(self, batch: Batch) -> Tensor:
        """Return the features of a packed batch, (B, P).

        A feature is the fraction of a series' time steps at which the output of a kernel exceeds a
        bias.
        """
        views, lengths = self._rounded_views(batch)
        found = self.bias.new_zeros(len(lengths), *self.bias.shape[:3], self.bias[0, 0, 0].numel())
        numbers = MAX_NUMBERS if views.is_cpu else MAX_NUMBERS_ON_DEVICE
        size = max(1, numbers // max(TAPS * views.shape[2], found.shape[-1]))
        begins = lengths.cumsum(0) - lengths
        ends = lengths_of(batch.packed.batch_sizes).cumsum(0)  # on the CPU: known without waiting
        for kind, number in np.ndindex(*self.bias.shape[:2]):
            weights = self.weights(kind, number)
            for begin in range(0, views.shape[1] - 1, size):
                every = torch.arange(min(size, views.shape[1] - 1 - begin), device=views.device)
                taps, row = self._packed_taps(every + begin, lengths, kind, number)
                chunk = torch.tensor([begin, begin + len(every) - 1], device="cpu")
                first, last = torch.searchsorted(ends, chunk, right=True).tolist()
                end = last + 1
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
        """Return the weights of the kernels at one dilation, (VIEWS, TAPS * C, 84).

        Args:
            kind: 0 for fixed dilations, 1 for relative ones.
            number: index of the dilation.
        """
        chosen = self.channels[kind, number].unsqueeze(2)
        return (self.pattern.unsqueeze(2) * chosen).flatten(2).transpose(1, 2).contiguous()

    def _views(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the views of a batch, (VIEWS, N, C), and the lengths of its series, (B,).

        The views are: values as scaled by train, values standardized per series, and the
        differences between consecutive time steps of both. The N time steps are ordered series by
        series, not in packed order.
        """
        data, sizes, width = batch.packed.data, batch.packed.batch_sizes, self.channels.shape[-1]
        row, step = rows_and_steps(sizes)
        lengths = lengths_of(sizes)
        begins = lengths.cumsum(0) - lengths
        standardized = self.series(data, Packed(sizes, data.device))
        both = torch.stack((data[:, :width], standardized[:, :width]))
        values = torch.empty_like(both)
        values[:, to_device(begins[row] + step, data.device)] = both
        changes = values.diff(dim=1, prepend=values[:, :1])
        changes[:, to_device(begins, data.device)] = 0
        return torch.cat((values, changes)), to_device(lengths, data.device)

    def _rounded_views(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the rounded views of a batch, (VIEWS, N + 1, C), and the lengths of its series.

        See `_views`. Row N of the views holds zeros.
        """
        views, lengths = self._views(batch)
        rounded = (views * self.gain).round().clamp(-LARGEST, LARGEST)
        return functional.pad(rounded, (0, 0, 0, 1)), lengths

    def _taps(
        self,
        steps: Tensor,
        lengths: Tensor,
        begins: Tensor,
        beyond: Tensor | int,
        kind: int,
        number: int,
    ) -> Tensor:
        """Return the rows of a view that the kernels of a dilation read for each output.

        A row is an index of the view's axis of time steps.

        Args:
            steps: time step of each output in its series.
            lengths: number of time steps of the series of each output. A relative dilation is
                scaled by this number, and rounded to a whole number of at least 1.
            begins: row of the first time step of the series of each output.
            beyond: row of zeros, which is read beyond the ends of a series.
            kind: 0 for fixed dilations, 1 for relative ones.
            number: index of the dilation.

        Shape:
            steps, lengths, begins: shapes that broadcast to (…). Returns: rows, (…, TAPS).
        """
        reach: Tensor | int = self.dilations[number]
        if self.relative[kind]:
            doubled = 2 * reach * lengths.unsqueeze(-1) + self.length
            reach = torch.div(doubled, 2 * self.length, rounding_mode="floor").clamp(min=1)
        offsets = torch.arange(TAPS, device=steps.device) - TAPS // 2
        read = steps.unsqueeze(-1) + offsets * reach
        inside = (read >= 0) & (read < lengths.unsqueeze(-1))
        return torch.where(inside, read + begins.unsqueeze(-1), beyond)

    def _packed_taps(
        self, rows: Tensor, lengths: Tensor, kind: int, number: int
    ) -> tuple[Tensor, Tensor]:
        """Return the rows that kernels read for each output, and the series of each output.

        See `_taps`.

        Args:
            rows: row at the center of each output.
            lengths: number of time steps of each series.
            kind: 0 for fixed dilations, 1 for relative ones.
            number: index of the dilation.

        Shape:
            rows: (n,). lengths: (B,). Returns: (n, TAPS), where row N holds zeros, and (n,).
        """
        begins = lengths.cumsum(0) - lengths
        series = torch.searchsorted(begins, rows, right=True) - 1
        first, beyond = begins[series], begins[-1] + lengths[-1]
        taps = self._taps(rows - first, lengths[series], first, beyond, kind, number)
        return taps, series

    @torch.no_grad()
    def fit(self, train: SequenceStore, seed: int) -> None:
        """Draw the channels of the kernels, and fit gains, biases and classifier, in place.

        Args:
            train: labelled series. If there are more than `MAX_ROWS`, a random sample is used.
            seed: seed of all random choices.
        """
        draw, rows = np.random.default_rng([seed, len(KERNELS)]), np.arange(len(train))
        if len(rows) > MAX_ROWS:
            rows = np.sort(draw.choice(rows, MAX_ROWS, replace=False))
        self._fit_gain(self._sample(train, rows, SCALE_ROWS, draw))
        for kind, number in np.ndindex(*self.bias.shape[:2]):
            self._draw_channels(kind, number, draw)
            self._fit_biases(self._sample(train, rows, BIAS_ROWS, draw), kind, number, draw)
        shares = self.mean.new_zeros(len(rows), len(self.mean))
        for some in plan_in_order_of_length(train.lengths[rows], BatchingConfig(max_tokens=16384)):
            batch = collate(train.__getitems__(rows[some])).to(shares.device)
            shares[torch.from_numpy(some)] = batch.restore(self.features(batch))
        std = shares.std(0, correction=0).view(*self.bias.shape[:3], -1)
        varies = std > LEAST_STD
        number = varies.sum((1, 3), keepdim=True) * len(self.relative) * VIEWS
        divisor = torch.where(varies, std * number.sqrt(), torch.inf).flatten()
        self.mean[:] = shares.mean(0)
        shares = (shares - self.mean) / divisor
        labels = torch.from_numpy(train.labels[rows])
        weight, self.intercept[:] = ridge(shares.cpu(), labels, len(self.intercept))
        self.weight[:] = weight.to(divisor) / divisor.unsqueeze(1)

    def _sample(
        self, train: SequenceStore, rows: Ints, most: int, draw: np.random.Generator
    ) -> Batch:
        some = draw.choice(rows, min(len(rows), most), replace=False)
        return collate(train.__getitems__(some)).to(self.mean.device)

    def _fit_gain(self, batch: Batch) -> None:
        """Set `gain`, the factor of each view before rounding.

        For values, the factor is GRID. For differences, GRID is divided by the root mean square of
        the channel in the sample, if this isn't 0.

        Args:
            batch: sample of series.
        """
        squares = self._views(batch)[0].cpu().double().square().mean(1, keepdim=True)
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

    def _fit_biases(self, batch: Batch, kind: int, number: int, draw: np.random.Generator) -> None:
        views, lengths = self._rounded_views(batch)
        steps = np.arange(views.shape[1] - 1)
        if len(steps) > BIAS_STEPS:
            steps = np.sort(draw.choice(steps, BIAS_STEPS, replace=False))
        rows = torch.from_numpy(steps).to(views.device)
        taps, _ = self._packed_taps(rows, lengths, kind, number)
        weights = self.weights(kind, number)
        count = self.bias[0, 0, 0].numel()
        quantiles = (number * count + np.arange(count) + 1) * GOLDEN_RATIO % 1
        ranks = np.rint(quantiles * (len(steps) - 1)).astype(np.int64).reshape(len(KERNELS), -1)
        for view in range(VIEWS):
            outputs = _convolved(views[view], taps, weights[view]).T.cpu().numpy()
            ordered = np.take_along_axis(
                np.sort(outputs), ranks, 1
            )  # NumPy sorts faster than torch
            self.bias[kind, number, view] = torch.from_numpy(ordered)

    def _padded_logits(self, steps: Tensor, layout: Padded) -> Tensor:
        """Return the logits of padded series, (B, K), by operations that ONNX has."""
        steps = layout.pad(steps)
        width, lengths = self.channels.shape[-1], layout.lengths.squeeze(1)
        standardized = self.series(steps, layout)
        both = torch.stack((steps[..., :width], standardized[..., :width])).transpose(1, 2)
        valid = layout.valid.transpose(0, 1)
        changes = both - torch.cat((both[:, :, :1], both[:, :, :-1]), dim=2)
        scaled = torch.cat((both, changes)) * self.gain[:, None]
        rounded = torch.where(valid, scaled.round().clamp(-LARGEST, LARGEST), 0)
        views = functional.pad(rounded.flatten(1, 2), (0, 0, 0, 1))
        rows, longest = both.shape[1:3]
        steps, begins = torch.arange(longest), torch.arange(rows)[:, None] * longest
        found = []
        for kind, number in np.ndindex(*self.bias.shape[:2]):
            taps = self._taps(steps, lengths[:, None], begins, rows * longest, kind, number)
            parts = zip(views, self.weights(kind, number), self.bias[kind, number], strict=True)
            for view, weights, bias in parts:
                outputs = view[taps].flatten(2) @ weights
                above = (outputs[:, :, None] > bias.T) & valid[..., None]
                found.append(above.float().sum(1).transpose(1, 2).flatten(1))
        shares = torch.cat(found, dim=1) / lengths[:, None]
        return (shares - self.mean) @ self.weight + self.intercept


def _convolved(view: Tensor, taps: Tensor, weights: Tensor) -> Tensor:
    """Return the outputs of 84 kernels at n positions of a view.

    Shape:
        view: (N + 1, C). taps: rows of the view that each output reads, (n, TAPS). weights:
        (TAPS * C, 84). Returns: (n, 84).
    """
    return view.index_select(0, taps.flatten()).view(len(taps), -1) @ weights
