"""Conversion of a trained classifier to an ONNX file.

B sequences, T longest length, F numbers of a time step, R numbers of row features, C classes.
"""

import warnings
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor, nn

from seqtrain.engines.interface import SparseRows
from seqtrain.engines.layout import Padded, valid_steps
from seqtrain.engines.torch_engine import TorchEngine
from seqtrain.errors import ConfigError, missing_package
from seqtrain.model.branches.branch import ForwardContext
from seqtrain.model.branches.ngrams import NgramBranch
from seqtrain.model.branches.recurrent import recurrent_branch
from seqtrain.model.inputs import SideInputs
from seqtrain.model.network import ClassifierNetwork
from seqtrain.sequences.batch import Spellings
from seqtrain.sequences.vocabulary import UNK

IDS, FEATURES, LENGTHS, STATIC = "input_ids", "features", "lengths", "static"
NGRAM_IDS, NGRAM_COUNTS, NGRAM_VALUES = "ngrams", "ngram_counts", "ngram_values"
UNKNOWN_COUNTS, UNKNOWN_BUCKETS = "unknown_counts", "unknown_buckets"
OPERATORS = 17
"""Version of the set of ONNX operators. It is from 2022, and all runtimes support it."""
LARGEST_WEIGHTS = 2**31 - 2**24
"""Largest total size of the weights in bytes. The format is limited to 2 GiB."""


class PaddedClassifier(nn.Module):
    """Trained classifier over padded sequences, as an exported model reads them.

    Args:
        network: the classifier.

    Attributes:
        inputs: maps the name of each input to an example and the names of its variable axes.
    """

    def __init__(self, network: ClassifierNetwork) -> None:
        super().__init__()
        self.network = network
        self.engine = TorchEngine("export", "padded")
        recurrent = recurrent_branch(network)
        self.subwords = recurrent.subwords
        static = recurrent.static
        self.inputs: dict[str, tuple[Tensor, list[str]]] = {}
        if network.reads_ids:
            self.inputs[IDS] = torch.ones(2, 3, dtype=torch.int64), ["batch", "time"]
        else:
            self.inputs[FEATURES] = torch.ones(2, 3, network.input_size), ["batch", "time"]
        self.inputs[LENGTHS] = torch.tensor([3, 2]), ["batch"]
        if static is not None:
            self.inputs[STATIC] = torch.ones(2, static.columns), ["batch"]
        if network.find(NgramBranch) is not None:
            self.inputs[NGRAM_IDS] = torch.tensor([0, 1]), ["n-grams"]
            self.inputs[NGRAM_COUNTS] = torch.tensor([1, 1]), ["batch"]
            self.inputs[NGRAM_VALUES] = torch.ones(2), ["n-grams"]
        if self.subwords is not None:
            self.subwords.known_words()  # a constant of the graph
            self.inputs[UNKNOWN_COUNTS] = torch.tensor([3, 2]), ["unknown words"]
            self.inputs[UNKNOWN_BUCKETS] = torch.arange(5), ["unknown n-grams"]

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return the calibrated probabilities, (B, C) float64.

        Args:
            inputs: tensors in the order of the attribute `inputs`.
        """
        named = dict(zip(self.inputs, inputs, strict=True))
        steps = inputs[0].transpose(0, 1)
        lengths = named[LENGTHS]
        layout = Padded(valid_steps(steps.shape[0], lengths), lengths)
        steps = layout.pad(steps)
        spellings = ngrams = None
        if NGRAM_IDS in named:
            ngrams = SparseRows.of(named[NGRAM_IDS], named[NGRAM_VALUES], named[NGRAM_COUNTS])
        if self.subwords is not None:
            beyond = steps >= len(self.subwords)
            spellings = _spellings(named, torch.where(beyond, steps - len(self.subwords), -1))
            steps = torch.where(beyond, UNK, steps)
        side = SideInputs(named.get(STATIC), spellings, ngrams)
        context = ForwardContext(engine=self.engine)
        logits = [branch(steps, layout, side, context) for branch in self.network.branches]
        return self.network.probabilities(self.network.combine(logits))


def _spellings(named: Mapping[str, Tensor], numbers: Tensor) -> Spellings:
    offsets = SparseRows.of(numbers, numbers, named[UNKNOWN_COUNTS]).offsets
    return Spellings(named[UNKNOWN_BUCKETS], offsets, numbers)


def to_onnx(network: ClassifierNetwork) -> bytes:
    """Return the content of an ONNX file with the model.

    The output is `probabilities` (B, C) float64, with the calibration of the model. The inputs are:

    - `input_ids` (B, T) int64 or `features` (B, T, F) float32, with any padding,
    - `lengths` (B,) int64, each from 1 to T,
    - `static` (B, R) float32, if there are row features,
    - inputs for n-grams and subwords, if the model has them: see `ExportedModel.inputs`.

    Raises:
        ConfigError: If the model has a carried initial state, its weights are too many for one
            file, or a package isn't installed.
    """
    if network.config.initial_state == "carried":
        raise ConfigError(
            "model.initial_state: carried can't be exported: a prediction depends on the rows of "
            "its group before it, and an ONNX file keeps nothing from call to call"
        )
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ModuleNotFoundError as error:
        raise missing_package("export", error.name, "export") from None
    size = sum(weight.nbytes for weight in network.state_dict().values())
    if size > LARGEST_WEIGHTS:
        raise ConfigError(
            f"export: {size:,} bytes of weights; an ONNX file holds {LARGEST_WEIGHTS:,}"
        )
    model = PaddedClassifier(network).eval()
    axes = {name: dict(enumerate(sizes)) for name, (_, sizes) in model.inputs.items()}
    with TemporaryDirectory() as folder, warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # a deprecation: the newer exporter lacks recurrent layers
        file = Path(folder, "model.onnx")
        torch.onnx.export(
            model,
            tuple(example for example, _ in model.inputs.values()),
            str(file),
            input_names=list(model.inputs),
            output_names=["probabilities"],
            dynamic_axes=axes | {"probabilities": {0: "batch"}},
            opset_version=OPERATORS,
            dynamo=False,
        )
        return file.read_bytes()
