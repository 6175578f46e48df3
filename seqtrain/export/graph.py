"""An ONNX graph that grows node by node, and knows which weights of a model it hasn't used yet."""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from torch import Tensor

from seqtrain.errors import ConfigError, missing_package

OPERATORS = 17
"""Version of ONNX's operators, and of its files below: those of 2022, which all runtimes know."""
FILE_VERSION = 8
LARGEST = 2**31 - 2**24
"""Bytes of weights that one file holds at most; the format ends at 2 GiB."""

Array: TypeAlias = npt.NDArray[Any]
Input: TypeAlias = str | Array | Sequence[int]
"""What a node reads: the name of what another one returns, or a constant."""
INT64, FLOAT, DOUBLE, INT32 = "INT64", "FLOAT", "DOUBLE", "INT32"
"""Types of numbers, as ONNX names them."""


def import_onnx() -> Any:
    """Return the package onnx, of the extra `export`.

    Raises:
        ConfigError: it or onnxruntime isn't installed.
    """
    try:
        import onnx
        import onnxruntime  # noqa: F401
    except ModuleNotFoundError as error:
        raise missing_package("export", error.name, "export") from None
    return onnx


class Graph:
    """Nodes, and the constants that they read; what a node returns is known by its name."""

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        self._onnx = import_onnx()
        self._weights = weights
        self._nodes: list[Any] = []
        self._constants: dict[str, Array] = {}
        self._inputs: list[Any] = []
        self._numbers = count()

    def weight(self, name: str) -> Array:
        """Return a weight of the model as an array."""
        array: Array = self._weights[name].detach().cpu().numpy()
        return array

    def constant(self, value: Array | Sequence[int], name: str = "constant") -> str:
        """Add a constant, an array as it is or whole numbers; return its name."""
        unique = f"{name}_{next(self._numbers)}"
        type = value.dtype if isinstance(value, np.ndarray) else np.int64
        self._constants[unique] = np.array(value, dtype=type, order="C")
        return unique

    def add(self, operator: str, *inputs: Input, **attributes: Any) -> str:
        """Add a node of one output, whose name is returned; '' is an input left out."""
        return self.add_many(operator, *inputs, wanted=(True,), **attributes)[0]

    def add_many(
        self, operator: str, *inputs: Input, wanted: Sequence[bool], **attributes: Any
    ) -> list[str]:
        """Add a node of several outputs; return their names, empty for those that aren't wanted."""
        read = [each if isinstance(each, str) else self.constant(each) for each in inputs]
        name = f"{operator.lower()}_{next(self._numbers)}"
        outputs = [f"{name}_{number}" if want else "" for number, want in enumerate(wanted)]
        node = self._onnx.helper.make_node(operator, read, outputs, name=name, **attributes)
        self._nodes.append(node)
        return outputs

    def unsqueeze(self, values: str, *axes: int) -> str:
        """Add axes of size 1."""
        return self.add("Unsqueeze", values, axes)

    def slice(self, values: str, start: int, end: int, axis: int) -> str:
        """Take a part of an axis."""
        return self.add("Slice", values, [start], [end], [axis])

    def size(self, values: str, axis: int) -> str:
        """Return the size of an axis, a scalar."""
        return self.add("Gather", self.add("Shape", values), np.array(axis))

    def range(self, end: str) -> str:
        """Return 0, 1, … up to a scalar."""
        return self.add("Range", np.array(0), end, np.array(1))

    def sum(self, values: str, axis: int, *, keepdims: int = 0) -> str:
        """Sum over an axis."""
        return self.add("ReduceSum", values, [axis], keepdims=keepdims)

    def cast(self, value: str, type: str) -> str:
        """Convert numbers to another type."""
        return self.add("Cast", value, to=getattr(self._onnx.TensorProto, type))

    def linear(self, values: str, name: str, *, bias: bool = True) -> str:
        """Apply the linear map whose weights have this name to values of any shape (…, inputs)."""
        weight = self.weight(f"{name}.weight").T
        product = self.add("MatMul", values, self.constant(weight, name))
        return self.add("Add", product, self.weight(f"{name}.bias")) if bias else product

    def takes(self, name: str, type: str, shape: Sequence[str | int]) -> None:
        """Add an input; an axis of a name takes any size."""
        self._inputs.append(self._port(name, type, shape))

    def to_bytes(self, output: str, name: str, shape: Sequence[str | int], made_by: str) -> bytes:
        """Return the file's content, checked by the package onnx; the output is of type FLOAT.

        Raises:
            ConfigError: the weights are too many for one file.
        """
        size = sum(array.nbytes for array in self._constants.values())
        if size > LARGEST:
            raise ConfigError(f"export: {size:,} bytes of weights; an ONNX file holds {LARGEST:,}")
        helper = self._onnx.helper
        nodes = [*self._nodes, helper.make_node("Identity", [output], [name])]
        made = self._onnx.numpy_helper.from_array
        weights = [made(array, own) for own, array in self._constants.items()]
        ports = [self._port(name, FLOAT, shape)]
        graph = helper.make_graph(nodes, "classifier", self._inputs, ports, weights)
        operators = [helper.make_opsetid("", OPERATORS)]
        model = helper.make_model(
            graph, opset_imports=operators, ir_version=FILE_VERSION, producer_name=made_by
        )
        self._onnx.checker.check_model(model)
        content: bytes = model.SerializeToString()
        return content

    def _port(self, name: str, type: str, shape: Sequence[str | int]) -> Any:
        number = getattr(self._onnx.TensorProto, type)
        return self._onnx.helper.make_tensor_value_info(name, number, list(shape))
