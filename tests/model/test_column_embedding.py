"""Models with several step columns and row features: batch-mates and padding change nothing."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_sequence, pad_sequence

from seqtrain.config.schema import ModelConfig
from seqtrain.model.branches.branch import ForwardContext
from seqtrain.model.branches.ngrams import NgramBranch
from seqtrain.model.column_embedding import ColumnEmbedding
from seqtrain.model.input_spec import InputSpec
from seqtrain.model.network import ClassifierNetwork
from seqtrain.model.standardization import SeriesStandardization
from seqtrain.sequences.batch import collate
from seqtrain.sequences.columns.column_table import ColumnTable
from seqtrain.sequences.columns.number_cells import NumberCells
from seqtrain.sequences.columns.scaling import Scale
from seqtrain.sequences.columns.token_cells import TokenCells
from seqtrain.sequences.ngram_vocabulary import GramColumn, fit_ngrams
from seqtrain.sequences.vocabulary import Vocabulary
from tests.helpers.batches import batch_of, classify
from tests.helpers.networks import CPU_WAYS, LENGTHS
from tests.helpers.stores import store_of

SIZES = (7, 4)
BRANCHES: dict[str, dict[str, Any]] = {
    "last": {},
    "deep": {"num_layers": 2, "bidirectional": True, "pooling": ["max", "last"]},
    "convolutions": {"convolutions": [[8, 3, 2]], "pooling": "mean"},
    "ngrams": {"ngrams": {"a": [1, 2], "b": [1, 1]}, "rnn": "lstm"},
    "own scale": {"pooling": "mean"},
    "bins": {"pooling": "mean"},
}
every_branch = pytest.mark.parametrize("branch", BRANCHES)


def table_of(*numbers: str, edges: tuple[float, ...] = ()) -> ColumnTable:
    names = ["<pad>", "<unk>", *"vwxyz"]
    vocabularies = [Vocabulary(tuple(names[:size])) for size in SIZES]
    tokens = [TokenCells(name, None, own) for name, own in zip("ab", vocabularies, strict=True)]
    scaled = [NumberCells(name, Scale((0.0,), (1.0,)), edges=edges) for name in numbers]
    return ColumnTable(tuple(tokens), tuple(scaled), "mask")


def rows_of(lengths: tuple[int, ...], numbers: int) -> list[Tensor]:
    draw = np.random.default_rng(1)
    tokens = [np.stack([draw.integers(1, size, n) for size in SIZES], axis=1) for n in lengths]
    others = [draw.normal(size=(n, 2 * numbers)) for n in lengths]
    pairs = zip(tokens, others, strict=True)
    return [torch.from_numpy(np.concatenate(pair, axis=1).astype(np.float32)) for pair in pairs]


ROWS, FACTS = rows_of(LENGTHS, 1), torch.cat(rows_of((1,) * len(LENGTHS), 2))


def make(branch: str, **keys: Any) -> ClassifierNetwork:
    small = {"embedding_dim": 5, "hidden_size": 6, "dropout": 0.0, "embedding_dropout": 0.0}
    config = ModelConfig.model_validate({**small, **BRANCHES[branch], **keys})
    ngrams = None
    if config.ngrams:
        values, ends = torch.cat(ROWS).numpy(), np.cumsum([0, *LENGTHS])
        columns = (GramColumn(0, 1, 2), GramColumn(1, 1, 1))
        ngrams = fit_ngrams(values, ends, *columns, most=40)
    series = None
    if branch == "own scale":
        series = SeriesStandardization(1, both=True, indicators=True, ids=len(SIZES))
    edges = (-1.0, 0.0, 0.5, 2.0) if branch == "bins" else ()
    codings = {"steps": table_of("n", edges=edges), "static": table_of("n", "m", edges=edges)}
    spec = InputSpec(4, 3, ngrams=ngrams, series=series, **codings)
    model = ClassifierNetwork(config, spec)
    model.initialize(seed=0)
    branch_of_ngrams = model.find(NgramBranch)
    if branch_of_ngrams is not None:
        torch.nn.init.normal_(branch_of_ngrams.weight, generator=torch.Generator().manual_seed(0))
    return model.eval()


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("way", CPU_WAYS, ids=str)
@every_branch
def test_batch_mates_order_and_padding_change_nothing(branch: str, way: dict[str, str]) -> None:
    model, order = make(branch, **way), [3, 0, 5, 1, 4, 6, 2]
    padded = pad_sequence([ROWS[row] for row in order], batch_first=True, padding_value=3)
    with torch.inference_mode():
        alone = [classify(model, pack_sequence([x]), static=FACTS[[i]]) for i, x in enumerate(ROWS)]
        one_by_one = torch.cat(alone)
        close(classify(model, pack_sequence(ROWS), static=FACTS), one_by_one)
        lengths = torch.tensor([LENGTHS[row] for row in order])
        close(classify(model, padded, lengths, static=FACTS[order]), one_by_one[order])
        other = classify(model, pack_sequence(ROWS), static=FACTS.flip(0))
    assert one_by_one.std(0).min() > 1e-3
    assert (other - one_by_one).abs().max() > 1e-3


@every_branch
def test_the_step_of_a_cell_is_what_its_row_of_the_table_says(branch: str) -> None:
    """Every cell counts: another token or number in any column changes the logits."""
    model = make(branch)
    with torch.inference_mode():
        before = classify(model, pack_sequence([ROWS[0]]), static=FACTS[[0]])
        for column in range(ROWS[0].shape[1]):
            steps = ROWS[0].clone()
            steps[2, column] = 2 + (steps[2, column] == 2) if column < 2 else steps[2, column] + 1
            after = classify(model, pack_sequence([steps]), static=FACTS[[0]])
            assert (after - before).abs().max() > 1e-6


def test_numbers_are_encoded_piecewise_linearly() -> None:
    """The encoding is that of equation 1 of Gorishniy et al. 2022, within the range of train."""
    parts = [part for part in make("bins").modules() if isinstance(part, ColumnEmbedding)]
    assert len(parts) == 2
    numbers = torch.tensor([-3.0, -0.25, 0.5, 1.25, 9.0])
    expected = [[0, 0, 0], [0.75, 0, 0], [1, 1, 0], [1, 1, 0.5], [1, 1, 1]]
    facts = next(part for part in parts if part.linear is None)
    ids, missing = torch.ones(5, 2), torch.zeros(5, 2)
    found = facts(torch.cat([ids, numbers[:, None], numbers[:, None], missing], dim=1))
    assert found[:, -6:].tolist() == [row + row for row in expected]


def test_edges_are_quantiles_or_few_distinct_values() -> None:
    draw = np.random.default_rng(0)
    cells = {"n": draw.normal(3, 2, 1000), "few": draw.integers(0, 3, 1000).astype(float)}
    cells["n"][:100] = np.nan
    many, few = (NumberCells(name).fit(cells, {}, 8) for name in cells)
    exact = np.quantile(cells["n"][100:], np.linspace(0, 1, 9))
    mean, std = many.scale.mean[0], many.scale.std[0]
    assert np.array(many.edges) * std + mean == pytest.approx(exact, abs=1e-5)
    values = np.array(few.edges) * few.scale.std[0] + few.scale.mean[0]
    assert values == pytest.approx([0, 1, 2], abs=1e-5)


def test_after_every_step_it_predicts_as_if_the_sequence_ended_there() -> None:
    model, packed = make("last"), pack_sequence(ROWS)
    with torch.inference_mode():
        found = model.step_logits(batch_of(packed, static=FACTS), ForwardContext())
        starts = packed.batch_sizes.cumsum(0) - packed.batch_sizes
        for end in range(1, LENGTHS[0] + 1):
            alone = classify(model, pack_sequence([ROWS[0][:end]]), static=FACTS[[0]])
            close(found[starts[end - 1]], model.combine([alone])[0])


@pytest.mark.parametrize("sort", ["collate", "module"])
def test_facts_stay_beside_their_sequences(sort: str) -> None:
    rows = store_of([[1], [2, 3, 4], [5, 6]], labels=[0, 1, 2])
    rows = replace(rows, static=np.array([[0], [1], [2]], np.float32))
    batch = collate(rows.selection(np.array([2, 0, 1])), sort)
    assert batch.static is not None
    assert batch.static[:, 0].tolist() == batch.labels.tolist()
    assert sorted(batch.labels.tolist()) == [0, 1, 2]
