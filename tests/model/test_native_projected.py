"""A table projected once gives the states that the table gives."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from seqtrain.model.cells import CELLS
from seqtrain.model.engines.interface import DistinctInputs, ProjectedTable
from seqtrain.model.engines.torch_engine import TorchEngine
from tests.helpers.examples import examples
from tests.helpers.native_cases import Case, needs_library, project, run_native


def projected(case: Case, table: ProjectedTable) -> DistinctInputs:
    assert case.index is not None
    return DistinctInputs(table, case.index, case.batch_sizes)


@examples(30)
@given(
    cell=st.sampled_from(sorted(CELLS)),
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=20),
    vectors=st.sampled_from([1, 7, 200]),
    hidden_size=st.sampled_from([1, 16, 33]),
    num_layers=st.integers(1, 2),
    bidirectional=st.booleans(),
    with_start=st.booleans(),
)
def test_same_bits_as_the_table(path: str, **keys: object) -> None:
    case = Case(**keys)  # type: ignore[arg-type]
    with torch.no_grad():
        expected, expected_h_n = case.native()
        inputs = projected(case, project(case.table, case.encoder))
        outputs, h_n = run_native(case.encoder, inputs, case.start)
    assert expected is not None
    assert outputs is not None
    assert torch.equal(outputs, expected)
    assert torch.equal(h_n, expected_h_n)


@needs_library
def test_has_no_gradients() -> None:
    case = Case([5, 3], vectors=7)
    inputs = projected(case, project(case.table, case.encoder))
    with pytest.raises(ValueError, match="no gradients"):
        run_native(case.encoder, inputs)
    case.encoder.requires_grad_(False)
    assert torch.equal(run_native(case.encoder, inputs)[1], case.native()[1])


@needs_library
@pytest.mark.parametrize("other", [nn.GRU(5, 70), nn.GRU(5, 6, bidirectional=True), nn.RNN(5, 6)])
def test_another_encoder_refuses_it(other: nn.RNNBase) -> None:
    case = Case([5, 3], vectors=7)
    inputs = projected(case, project(case.table, case.encoder))
    with torch.no_grad(), pytest.raises(ValueError, match="project again"):
        run_native(other, inputs)


@needs_library
def test_ids_outside_the_table_are_refused() -> None:
    case = Case([5, 3], vectors=7)
    case.index = torch.full((8,), 7)
    with torch.no_grad(), pytest.raises(ValueError, match="7 to 7, must be 0 to 6"):
        run_native(case.encoder, projected(case, project(case.table, case.encoder)))


@needs_library
def test_tables_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(tokens, 5\)"):
        project(torch.zeros(9, 4), nn.GRU(5, 6))


@needs_library
def test_the_torch_engine_refuses_it() -> None:
    case = Case([5, 3], vectors=7)
    with pytest.raises(TypeError, match="native engine alone"):
        TorchEngine("").run(case.encoder, projected(case, project(case.table, case.encoder)))
