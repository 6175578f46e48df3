"""Classify the rows of a file with the model in this script's folder:

python predict.py FILE
python predict.py FILE --input-format FORMAT

FILE is read as `seqtrain predict` reads it. Files such as .csv, .tsv and .jsonl, also with .gz,
have the columns of the training file. A .txt file has one sequence per line, and so has standard
input, whose name is `-`. FORMAT (csv, tsv, jsonl, fasta …) replaces the format of the file's
ending. Standard input that begins like a file of another format is refused without it. If the
model was trained on whole files, a .txt file, or each file of a folder, is one sequence. The output
has one line per row with the label and its probability. Both are empty if the sequence is empty.
The script only needs numpy and onnxruntime (with data.tokenizer: bpe also tokenizers); reading.zip
has the modules of seqtrain that read rows.
Exit codes: 0 done, 2 wrong input, 141 closed pipe.
"""

import io
import json
import os
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass
from itertools import chain, islice
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
import onnxruntime

EXPORT = os.path.dirname(os.path.abspath(__file__))
MODULES = os.path.join(EXPORT, "reading.zip")
AGAIN = "missing or damaged; export the model again"
if __name__ == "__main__":
    if not zipfile.is_zipfile(MODULES):
        print(f"{MODULES}: {AGAIN}", file=sys.stderr)
        sys.exit(2)
    sys.path.insert(0, MODULES)  # before the modules of seqtrain are imported

from seqtrain.errors import DataError, SeqtrainError  # noqa: E402
from seqtrain.sequences.decisions import best_class, reached  # noqa: E402
from seqtrain.sequences.encoder import EncodingReport, encode_for_prediction  # noqa: E402
from seqtrain.sequences.examples import Example, in_chunks  # noqa: E402
from seqtrain.sequences.input_checks import input_check  # noqa: E402
from seqtrain.sequences.inputs import Input  # noqa: E402
from seqtrain.sequences.ngram_vocabulary import (  # noqa: E402
    GramColumn,
    NgramVocabulary,
    ngram_values,
)
from seqtrain.sequences.preprocessing import Preprocessing  # noqa: E402
from seqtrain.sequences.reading import SequenceReader  # noqa: E402
from seqtrain.sequences.store import SequenceStore  # noqa: E402
from seqtrain.tables.formats import FORMATS  # noqa: E402
from seqtrain.text import (  # noqa: E402
    copied_text,
    delimited_line,
    display_name,
    one_line,
    printable,
)

PADDED_STEPS = 16384
"""Largest number of time steps of a batch, padding included."""


class ExportedModel:
    """An exported model: the ONNX graph, and the preprocessing of its inputs.

    Args:
        onnx: Content of model.onnx.
        fitted: Preprocessing of the model.
        thresholds: Threshold of each class, a probability: see `best_class` and `reached`.
    """

    def __init__(self, onnx: bytes, fitted: Preprocessing, thresholds: list[float]) -> None:
        self.fitted, self.grams, self.thresholds = fitted, fitted.sequence.words, thresholds
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(
            onnx, options, providers=["CPUExecutionProvider"]
        )

    def probabilities(self, store: SequenceStore) -> Any:
        """Return the probabilities of encoded sequences, (B, C) float64, in the order of the store.

        For speed, they are computed in batches of similar length. Each sequence must have a step.
        """
        found = np.empty((len(store), len(self.fitted.labels)))
        order = np.argsort(store.lengths, kind="stable")
        while len(order):
            size = max(1, PADDED_STEPS // int(store.lengths[order[-1]]))
            order, batch = order[:-size], order[-size:]
            given = self.inputs(store.__getitems__(batch))
            with damage_in("model.onnx"):
                (found[batch],) = self.session.run(["probabilities"], given)
        return found

    def decide(self, probabilities: Any) -> tuple[str, str]:
        """Return the predicted label of a row and its probability, as texts.

        In a multi-label task, each text joins the labels or probabilities of all predicted classes.
        If no class is predicted, the texts are empty.

        Args:
            probabilities: Probability of each class, (C,).
        """
        best = [int(best_class(probabilities, self.thresholds))]
        label_set = self.fitted.label_set
        if label_set.multi_label:
            best = np.flatnonzero(reached(probabilities, self.thresholds)).tolist()
        shares = label_set.join(f"{probabilities[i]:.6f}" for i in best)
        return label_set.join(label_set.decode(best)), shares

    def inputs(self, rows: SequenceStore) -> dict[str, Any]:
        """Return the inputs of the graph for a batch of encoded rows.

        The dictionary maps the name of each input to its array. Sequences are padded with zeros.
        """
        lengths = rows.lengths
        values = rows.values
        valid = np.arange(lengths.max()) < lengths[:, None]
        is_ids = values.ndim == 1
        known = self.fitted.vocabulary
        padded = np.zeros((*valid.shape, *values.shape[1:]), np.int64 if is_ids else np.float32)
        padded[valid] = values
        given = {"input_ids" if is_ids else "features": padded, "lengths": lengths}
        if rows.static is not None:
            given["static"] = rows.static
        if self.fitted.ngrams is not None:
            arrays = values, rows.offsets, self.fitted.ngrams, self.grams
            found = ngram_values(*arrays, rows.spellings, rows.words)
            given["ngrams"] = found.ngrams
            given["ngram_counts"] = np.bincount(found.rows, minlength=len(rows))
            given["ngram_values"] = found.values
        if rows.spellings is not None and rows.words is not None and known is not None:
            beyond = rows.spellings >= 0
            words, own = np.unique(rows.spellings[beyond], return_inverse=True)
            ids = values.astype(np.int64)
            ids[beyond] = len(known) + own
            padded[valid] = ids
            offsets = rows.words.offsets
            buckets = rows.words.buckets
            grams = [buckets[offsets[word] : offsets[word + 1]] for word in words]
            given["unknown_counts"] = np.array([len(each) for each in grams], dtype=np.int64)
            given["unknown_buckets"] = np.concatenate([[], *grams]).astype(np.int64)
        return given


@contextmanager
def damage_in(name: str) -> Iterator[None]:
    """Raise DataError that names a file of the export, if the body of the `with` fails.

    A damaged file makes libraries raise errors of many types.
    """
    try:
        yield
    except SeqtrainError:
        raise
    except Exception as error:
        raise DataError(f"{name}: {AGAIN} ({type(error).__name__})") from None


def load_export(folder: str) -> ExportedModel:
    """Return the model in the folder of an export.

    Raises:
        DataError: If a file of the export is missing or damaged.
    """

    def content(name: str) -> bytes:
        with damage_in(name), open(os.path.join(folder, name), "rb") as file:
            return file.read()

    onnx = content("model.onnx")
    ngrams = None
    rules = content("preprocessing.json")
    vocabulary = content("vocabulary.json")
    with damage_in("preprocessing.json"):
        values = json.loads(rules)
        thresholds = [float(value) for value in values["thresholds"]]
        saved: Preprocessing = built(Preprocessing, values["preprocessing"])
        has_ngrams = values["has_ngrams"]
    if has_ngrams:
        with damage_in("ngrams.npz"):
            arrays = np.load(io.BytesIO(content("ngrams.npz")))
            columns = tuple(GramColumn(*column) for column in arrays["columns"].tolist())
            ngrams = NgramVocabulary(columns, arrays["keys"], arrays["idf"])
    with damage_in("preprocessing.json or vocabulary.json"):
        fitted = saved.completed(json.loads(vocabulary), ngrams)
    with damage_in("model.onnx"):
        return ExportedModel(onnx, fitted, thresholds)


def built(kind: Any, values: Any) -> Any:
    """Return a part of the preprocessing from its JSON values, as `export` wrote them.

    Args:
        kind: Type of the part: a dataclass, a tuple or a union of such types, or any other type of
            JSON values.
        values: The values.
    """
    if get_origin(kind) in (Union, UnionType):
        options = get_args(kind)
    else:
        options = (kind,)
    if isinstance(values, list):
        of_items = [get_args(each)[0] for each in options if get_origin(each) is tuple]
        return tuple(built(of_items[0], each) for each in values)
    for part in filter(is_dataclass, options):
        types = get_type_hints(part)
        if isinstance(values, dict) and values.keys() <= types.keys():
            make: Any = part
            return make(**{name: built(types[name], each) for name, each in values.items()})
    return values


def predictions(
    path: str, model: ExportedModel, report: EncodingReport, input_format: str | None = None
) -> Iterator[tuple[Example, str, str]]:
    """Yield each row of a file with its predicted label and the probability, as texts.

    The texts are empty for a row without a prediction, such as an empty sequence.

    Args:
        path: Path of the file, or "-" for standard input.
        model: The model.
        report: Receives counts of the rows, for notices.
        input_format: Name of the format, or None to go by the file's name.

    Raises:
        DataError: If the file, or a row, can't be read.
    """
    fitted = model.fitted
    rules = fitted.for_prediction(empty="blank" if fitted.lengths.empty == "error" else None)
    schema = fitted.schema.for_input(path, input_format=input_format)
    check = input_check(path, schema, fitted, input_format, report.remarks)
    keep = schema.id_columns
    reader = SequenceReader(Input(path, schema, labelled=False), keep=keep, check=check)
    parts = in_chunks(reader.read())
    for part, store in encode_for_prediction(rules, parts, display_name(path), report):
        for index, found in enumerate(model.probabilities(store)):
            row = part.example(index)
            yield row, *(model.decide(found) if row.problem is None else ("", ""))


def main() -> int:
    """Print the predictions for the file that the command line names, and return the exit code.

    Print the help instead if the argument is --help, or if the arguments are others.
    """
    arguments = sys.argv[1:]
    input_format = None
    if "--input-format" in arguments[:-1]:
        at = arguments.index("--input-format")
        input_format = arguments[at + 1]
        del arguments[at : at + 2]
    is_help = arguments in (["-h"], ["--help"])
    if is_help or len(arguments) != 1 or input_format not in (None, *FORMATS):
        print((__doc__ or "").strip(), file=sys.stdout if is_help else sys.stderr)
        if is_help:
            return 0
        return 2
    report = EncodingReport()
    output = sys.stdout
    output.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    shown = printable if output.isatty() else str
    try:
        model = load_export(EXPORT)
        fitted = model.fitted
        rows = predictions(arguments[0], model, report, input_format)
        first = list(islice(rows, 1))
        where = []
        ids = list(map(str, fitted.schema.id_columns))
        for row, *_ in first:
            where = row.place_columns(ids, whole_files=fitted.schema.whole_files)
        output.write(delimited_line([*map(shown, where + ids), "label", "probability"], "\t"))
        for row, *found in chain(first, rows):
            texts = [str(getattr(row, name)) for name in where]
            texts += [copied_text((row.kept or {}).get(name)) for name in ids] + found
            output.write(delimited_line([shown(text) for text in texts], "\t"))
        output.flush()
    except BrokenPipeError:  # the reader of the output has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())
        return 141
    except SeqtrainError as error:
        output.flush()
        to_train = "  seqtrain init"  # a command that the exported model has no use for
        lines = [one_line(line) for line in error.problems if not line.startswith(to_train)]
        print(*lines, sep="\n", file=sys.stderr)
        return error.exit_code
    for line in report.notices("input"):
        print(line, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
