"""The trained classifier once more, on padded sequences, of operations that ONNX has.

ids → word vectors, with subwords; or columns, or feature vectors → by their own mean and deviation
→ a linear map; convolutions → recurrent encoder → pooling → head; n-grams or kernels beside it.

B batch, T longest length, E size of a vector, F features, H hidden, D directions, C classes, U
distinct unknown words of a batch.
"""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from seqtrain.data.vocabulary import UNK
from seqtrain.errors import ConfigError
from seqtrain.model.cells import PARAMETERS, as_torch_takes, cell_of
from seqtrain.model.classifier import ClassifierNetwork
from seqtrain.model.convolutions import ConvolutionLayer
from seqtrain.model.kernels import LARGEST, TAPS, KernelBank
from seqtrain.model.ngrams import GAIN, NgramClassifier
from seqtrain.model.pooling import pooling_names
from seqtrain.model.standardization import ALIKE, SeriesStandardization

IDS, FEATURES, LENGTHS, STATIC = "input_ids", "features", "lengths", "static"
NGRAMS, NGRAM_ROWS, NGRAM_VALUES = "ngrams", "ngram_rows", "ngram_values"
UNKNOWN_COUNTS, UNKNOWN_BUCKETS = "unknown_counts", "unknown_buckets"


class PaddedClassifier(nn.Module):
    """Probabilities (B, C) float32 of padded sequences, by the weights of a network.

    Attributes:
        inputs: of each input by name an example, and a name for each axis of any size.
    """

    def __init__(self, network: ClassifierNetwork) -> None:
        super().__init__()
        self.network = network
        lengths = torch.tensor([3, 2])
        self.inputs: dict[str, tuple[Tensor, list[str]]] = {}
        if isinstance(network.embedding, nn.Embedding):
            self.inputs[IDS] = torch.ones(2, 3, dtype=torch.int64), ["batch", "time"]
        else:
            self.inputs[FEATURES] = torch.ones(2, 3, network.input_size), ["batch", "time"]
        self.inputs[LENGTHS] = lengths, ["batch"]
        if network.static is not None:
            self.inputs[STATIC] = torch.ones(2, network.static.columns), ["batch"]
        if network.subwords is not None:
            self.inputs[UNKNOWN_COUNTS] = lengths, ["unknown words"]
            self.inputs[UNKNOWN_BUCKETS] = torch.arange(5), ["unknown n-grams"]
            with torch.inference_mode():
                spelled = network.subwords(torch.arange(len(network.subwords)))
                self.spelled = network.embedding.weight + spelled
        if network.ngrams is not None:
            for name in (NGRAMS, NGRAM_ROWS):
                self.inputs[name] = torch.tensor([0, 1]), ["n-grams"]
            self.inputs[NGRAM_VALUES] = torch.ones(2), ["n-grams"]

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return the calibrated probabilities; inputs come in the order of their names."""
        given, network = dict(zip(self.inputs, inputs, strict=True)), self.network
        lengths, steps = given[LENGTHS], inputs[0].transpose(0, 1)
        valid = valid_steps(steps, lengths)
        steps = torch.where(valid if steps.ndim == 3 else valid[:, :, 0], steps, 0)
        branches = [self._logits(steps, valid, given)]
        if network.ngrams is not None:
            ngrams = (given[name] for name in (NGRAMS, NGRAM_ROWS, NGRAM_VALUES))
            branches.append(ngram_logits(network.ngrams, lengths.shape[0], *ngrams))
        if network.kernels is not None:
            branches.append(kernel_logits(network.kernels, steps, lengths, valid))
        return network.probabilities(network.combine(branches)).float()

    def _logits(self, steps: Tensor, valid: Tensor, given: dict[str, Tensor]) -> Tensor:
        """Return the logits of the recurrent branch, (B, C)."""
        network, lengths = self.network, given[LENGTHS]
        if network.subwords is not None:
            steps = self._spelled_words(steps, given[UNKNOWN_COUNTS], given[UNKNOWN_BUCKETS])
        else:
            if network.inputs.series is not None:
                steps = standardized(network.inputs.series, steps, valid)
            steps = network.embedding(steps)
        for layer in network.convolutions or ():
            assert isinstance(layer, ConvolutionLayer)
            steps = convolved(layer, steps, valid)
            lengths = torch.div(lengths + layer.stride - 1, layer.stride, rounding_mode="floor")
            valid = valid_steps(steps, lengths)
        states, last = self._encoded(steps, lengths)
        seen = self._pooled(states, last, lengths, valid)
        if network.static is not None:
            seen = torch.cat((seen, network.static(given[STATIC])), dim=1)
        logits: Tensor = network.head(seen)
        return logits

    def _spelled_words(self, ids: Tensor, counts: Tensor, buckets: Tensor) -> Tensor:
        """Return words' vectors with their subwords, (T, B, E); unknown ones have ids from V on."""
        network = self.network
        assert network.subwords is not None
        size, weight = len(network.subwords), network.subwords.weight
        grams = weight[buckets % len(weight)].double()
        # Sums of neighbours are differences of sums from the beginning.
        upto = functional.pad(grams.cumsum(0), (0, 0, 1, 0))
        ends = counts.cumsum(0)
        sums = (upto[ends] - upto[ends - counts]) / counts.clamp(min=1).double().sqrt()[:, None]
        unknown = functional.pad(sums, (0, 0, 1, 0)).float()  # row 0 is that of known words
        known = ids < size
        vectors: Tensor = self.spelled[torch.where(known, ids, UNK)]
        return vectors + unknown[torch.where(known, 0, ids - size + 1)]

    def _encoded(self, steps: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Run all layers: return the top one's states (T, B, D * H), and its last ones (B, D * H).

        A sequence is turned round within its length for the backward direction.
        """
        encoder, last = self.network.encoder, steps
        back = (lengths - 1 - torch.arange(steps.shape[0])[:, None]).clamp(min=0)
        for layer in range(encoder.num_layers):
            states = [one_way(self.network, steps, layer)]
            if encoder.bidirectional:
                states.append(one_way(self.network, _at(steps, back), layer, "_reverse"))
            last = torch.cat([_at(each, lengths - 1) for each in states], dim=1)
            states[1:] = [_at(each, back) for each in states[1:]]
            steps = torch.cat(states, dim=2)
        return steps, last

    def _pooled(self, states: Tensor, last: Tensor, lengths: Tensor, valid: Tensor) -> Tensor:
        """Return what the head sees of states (T, B, D * H), of which these are valid."""
        network, found = self.network, []
        states = network.join(states)
        for name in pooling_names(network.config.pooling):
            if name == "last":
                found.append(network.join(last))
            elif name == "max":
                found.append(torch.where(valid, states, -torch.inf).amax(0))
            elif name == "mean":
                found.append(torch.where(valid, states, 0).sum(0) / lengths[:, None])
            elif name == "attention":
                own = "pooling" if isinstance(network.config.pooling, str) else "pooling.attention"
                project, score = (network.get_submodule(f"{own}.{x}") for x in ("project", "score"))
                scores = score(project(states).tanh())
                shares = torch.where(valid, scores, -torch.inf).softmax(0)
                found.append((shares * torch.where(valid, states, 0)).sum(0))
            else:
                how = "can't be exported yet; seqtrain predict reads such a model"
                raise ConfigError(f"model.pooling: {name} {how}")
        return torch.cat(found, dim=1)


def valid_steps(steps: Tensor, lengths: Tensor) -> Tensor:
    """Return which steps of (T, B, …) aren't padding, (T, B, 1)."""
    return (torch.arange(steps.shape[0])[:, None] < lengths)[:, :, None]


def _at(values: Tensor, steps: Tensor) -> Tensor:
    """Return the values (T, B, E) of other steps of each row, (…, B), as (…, B, E)."""
    rows = values.shape[1]
    return values.flatten(0, 1)[steps * rows + torch.arange(rows)]


def one_way(network: ClassifierNetwork, steps: Tensor, layer: int, suffix: str = "") -> Tensor:
    """Return the states (T, B, H) of one layer and direction, which reads (T, B, E)."""
    encoder, rows = network.encoder, steps.shape[1]
    cell = cell_of(encoder)
    weights = [getattr(encoder, f"{name}_l{layer}{suffix}") for name in PARAMETERS]
    start = steps.new_zeros(cell.tensors, 1, rows, encoder.hidden_size)
    if network.config.initial_state == "learned":
        number = layer * (1 + encoder.bidirectional) + bool(suffix)
        start = network.initial_state[:, number, None, None].expand(-1, 1, rows, -1)
    before = as_torch_takes(start)
    how = {"has_biases": True, "train": False, "bidirectional": False, "batch_first": False}
    states: Tensor = cell.kernel(steps, before, weights, num_layers=1, dropout=0.0, **how)[0]
    return states


def standardized(series: SeriesStandardization, steps: Tensor, valid: Tensor) -> Tensor:
    """Standardise each channel of each series (T, B, F) by its own valid steps, (T, B, 1)."""
    ids, numbers = steps[..., : series.ids], steps[..., series.ids :]
    values, absent = numbers[..., : series.channels], numbers[..., series.channels :]
    present = valid.double() * (1 - absent.double() if series.indicators else 1)
    exact = values.double() * present
    counts = present.sum(0, keepdim=True).clamp(min=1)
    mean = exact.sum(0, keepdim=True) / counts
    away = (exact - mean) * present
    deviation = (away.square().sum(0, keepdim=True) / counts).sqrt()
    constant = deviation <= ALIKE * mean.abs()
    scaled = away / torch.where(constant, 1.0, deviation)
    own = torch.where(constant, 0.0, scaled).float()
    return torch.cat([ids, values, own, absent] if series.both else [ids, own, absent], dim=2)


def convolved(layer: ConvolutionLayer, steps: Tensor, valid: Tensor) -> Tensor:
    """Convolve (T, B, F), zeros beyond the true ends."""
    steps = torch.where(valid, steps, 0).permute(1, 2, 0)
    found = functional.conv1d(steps, layer.weight, stride=layer.stride, padding=layer.kernel // 2)
    normed: Tensor = layer.norm(found)
    return normed.relu().permute(2, 0, 1)


def ngram_logits(
    branch: NgramClassifier, rows: int, ngrams: Tensor, of_row: Tensor, values: Tensor
) -> Tensor:
    """Return the logits (B, C) of the n-grams, rows and values that `ngram_inputs` finds."""
    terms = branch.weight[ngrams] * GAIN * values[:, None]
    start = branch.bias.expand(rows, -1)
    return start.scatter_add(0, of_row[:, None].expand_as(terms), terms)


def kernel_logits(bank: KernelBank, steps: Tensor, lengths: Tensor, valid: Tensor) -> Tensor:
    """Return the logits (B, C) of a bank of kernels on feature vectors (T, B, F), 0 as padding."""
    width, own = bank.channels.shape[-1], standardized(bank.series, steps, valid)
    both, valid = torch.stack((steps, own))[..., :width].transpose(1, 2), valid.transpose(0, 1)
    changes = both - torch.cat((both[:, :, :1], both[:, :, :-1]), dim=2)
    scaled = torch.cat((both, changes)) * bank.gain[:, None]
    whole = torch.where(valid, scaled.round().clamp(-LARGEST, LARGEST), 0)
    views = functional.pad(whole.flatten(1, 2), (0, 0, 0, 1))
    found = []
    for kind, number in np.ndindex(*bank.bias.shape[:2]):
        taps = kernel_taps(bank, both[0], lengths, kind, number)
        every = zip(views, bank.weights(kind, number), bank.bias[kind, number], strict=True)
        for view, own, bias in every:
            outputs = view[taps].flatten(2) @ own
            above = (outputs[:, :, None] > bias.T) & valid[..., None]
            found.append(above.float().sum(1).transpose(1, 2).flatten(1))
    shares = torch.cat(found, dim=1) / lengths[:, None]
    return (shares - bank.mean) @ bank.weight + bank.intercept


def kernel_taps(bank: KernelBank, steps: Tensor, lengths: Tensor, kind: int, number: int) -> Tensor:
    """Return which rows of a view, (B * T + 1, …), each kernel reads at each step, (B, T, TAPS)."""
    dilation, (rows, longest) = bank.dilations[number], steps.shape[:2]
    reach: Tensor | int = dilation
    if bank.relative[kind]:
        twice = 2 * dilation * lengths + bank.length
        reach = torch.div(twice, 2 * bank.length, rounding_mode="floor").clamp(min=1)[:, None, None]
    read = torch.arange(longest)[:, None] + (torch.arange(TAPS) - TAPS // 2) * reach
    inside = (read >= 0) & (read < lengths[:, None, None])
    return torch.where(inside, read + torch.arange(rows)[:, None, None] * longest, rows * longest)
