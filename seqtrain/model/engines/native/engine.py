"""The engine that calls the compiled library."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from seqtrain.model.cells import Cell
from seqtrain.model.engines.interface import Between, DistinctInputs, Engine
from seqtrain.model.engines.native.call import Projected
from seqtrain.model.engines.native.library import KINDS, why_not
from seqtrain.model.engines.native.projected import project
from seqtrain.model.engines.native.stack import run_stack


class NativeEngine(Engine):
    """Calls the compiled library: float32 on the CPU."""

    name = "native"
    cells = tuple(KINDS)
    reads_distinct = True

    @classmethod
    def why_not(cls, cell: Cell, device: torch.device, dtype: torch.dtype) -> str:
        """Return in one line why it can't run; as `Engine.why_not`."""
        absent = super().why_not(cell, device, dtype)
        if not absent and device.type != "cpu":
            absent = f"it has no kernels for {device.type}"
        if not absent and dtype != torch.float32:
            absent = f"native takes float32 alone, not {str(dtype).removeprefix('torch.')}"
        return absent or why_not()

    def run(
        self,
        encoder: nn.RNNBase,
        inputs: PackedSequence | DistinctInputs,
        start: Tensor | None = None,
        *,
        need_outputs: bool = True,
        between: Between | None = None,
    ) -> tuple[Tensor | None, Tensor]:
        """Run all layers; as `Engine.run`."""
        return run_stack(encoder, inputs, start, need_outputs=need_outputs, between=between)

    def project(self, table: Tensor, encoder: nn.RNNBase) -> Projected:
        """Project a table once; as `Engine.project`."""
        return project(table, encoder)
