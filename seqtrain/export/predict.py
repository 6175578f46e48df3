"""Classify the rows of a file with the model beside this script: python predict.py FILE

A .csv, .tsv or .jsonl file (.gz behind it or not) is read as the training file was; a .txt file
holds one sequence per line, as standard input does, whose name is `-`. Where the model was trained
on whole files, a .txt file, or each file of a folder, is one sequence. Each row gives a line with
its label and the label's probability; both are empty where the sequence is. Needs numpy and
onnxruntime, and nothing else. Exit codes: 0 done, 2 what was given is wrong, 141 a closed pipe.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import sys
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, pairwise
from typing import Any

import numpy as np
import onnxruntime

PAD, UNK = 0, 1
ROWS, PADDED_STEPS = 1024, 16384  # of a chunk that is read, of a batch that is computed
DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
INTEGERS = re.compile(r"\s*\[\s*(?:-?[0-9]+(?:\s*,\s*-?[0-9]+)*)?\s*\]\s*")  # in JSON
EXCEL_HINT = re.compile(r"sep=(.)")  # first line by which Excel says what separates the fields
BUFFER, SNIFFED_LINES = 1 << 18, 20
ENDINGS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".txt": "txt"}
ENDINGS |= {".ft": "fasttext", ".fasttext": "fasttext", ".ts": "ts", ".npz": "npz"}
QUOTED = re.compile(r'(?<![^,;\t|\n])"(?:[^"]|"")*("|\Z)')
WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
# What byte-pair merges don't cross; letters, digits and blanks beyond ASCII are replaced before.
PIECE = re.compile(
    r"'(?:[stmd]|re|ve|ll)| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+", re.ASCII
)
BLANKS = "\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
SHOWN = [*range(33, 127), *range(161, 173), *range(174, 256)]  # bytes that are shown as themselves
HIDDEN = [byte for byte in range(256) if byte not in SHOWN]
MULTIPLIER, LOW_HALF = -7046029254386353131, 0xFFFF_FFFF  # of the keys of n-grams of ids
BUCKETS, MOST_GRAMS = 2**15, 1024  # of the n-grams of an unknown word's characters
BAD_ROW = (
    OSError, EOFError, LookupError, TypeError, ValueError, OverflowError, RecursionError,
    csv.Error, zlib.error,
)  # fmt: skip
ALPHABET = {byte: chr(byte) for byte in SHOWN} | {b: chr(256 + n) for n, b in enumerate(HIDDEN)}


class Splitter:
    """Splits texts as preprocessing.json says."""

    def __init__(self, rules: dict[str, Any]) -> None:
        self.rules = rules
        self.ranks = {tuple(pair): rank for rank, pair in enumerate(rules["merges"] or [])}

    def __call__(self, sequence: Any) -> Iterable[str]:
        """Return the tokens of a text; symbols are tokens already."""
        if self.rules["kind"] == "tokens":
            return list(sequence)
        text: str = sequence.lower() if self.rules["lowercase"] else sequence
        tokenizer = self.rules["tokenizer"]
        if tokenizer == "word":
            return WORD.findall(text)
        if tokenizer == "whitespace":
            return text.split()
        if tokenizer == "byte":
            return text.encode("utf-8", "surrogatepass").decode("latin-1")
        return text if tokenizer == "char" else chain.from_iterable(self.merged(text.strip()))

    def merged(self, text: str) -> Iterator[list[str]]:
        """Join the bytes of each piece of a text, pair by pair in the order they were learned."""
        for match in PIECE.finditer("".join(map(as_ascii, text))):
            parts = [ALPHABET[byte] for byte in text[match.start() : match.end()].encode()]
            while len(parts) > 1:
                best = min(pairwise(parts), key=lambda pair: self.ranks.get(pair, len(self.ranks)))
                if best not in self.ranks:
                    break
                joined: list[str] = []
                for part in parts:
                    if joined and (joined[-1], part) == best:
                        joined[-1] += part
                    else:
                        joined.append(part)
                parts = joined
            yield parts


class Model:
    """The exported model: the contents of the files beside this script."""

    def __init__(
        self, onnx: bytes, rules: dict[str, Any], tokens: list[str], tables: Mapping[str, Any]
    ) -> None:
        self.rules, self.labels = rules, rules["labels"]
        self.ids = {token: i for i, token in enumerate(tokens) if i != PAD}
        self.size, self.unknown = len(tokens), dict[str, int]()
        self.tables = tables
        self.split = Splitter(rules)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(
            onnx, options, providers=["CPUExecutionProvider"]
        )

    def encode(self, sequence: Any) -> Any:
        """Return the ids (T,) or scaled vectors (T, F) of a sequence; None: it has no answer."""
        rules, features = self.rules, self.rules["kind"] == "features"
        if features:
            self.check(sequence)
        steps = sequence if features else list(map(self.id, self.split(sequence)))
        limit, length = rules["max_length"] or len(steps), len(steps)
        if length > limit:
            if rules["overlong"] == "error":
                raise ValueError(f"{length} steps; the model allows {limit}")
            spare = {"head": 0, "tail": length - limit, "middle": (length - limit) // 2}
            steps = steps[spare[rules["overlong"]] :][:limit]
        if not length:
            if rules["empty"] == "blank":
                return None
            steps = np.full((1, len(rules["mean"])), np.nan, np.float32) if features else [UNK]
        return self.scale(steps) if features else np.array(steps, dtype=np.int64)

    def id(self, token: str) -> int:
        """Return the id of a token; unknown words are numbered beyond if their spelling counts."""
        if token in self.ids or not self.rules["subwords"]:
            return self.ids.get(token, UNK)
        return self.unknown.setdefault(token, self.size + len(self.unknown))

    def check(self, vectors: Any) -> None:
        """Refuse vectors of another width, and values that the model wasn't trained to read."""
        channels = len(self.rules["mean"])
        if len(vectors) and vectors.shape[1:] != (channels,):
            raise ValueError(f"vectors of shape {vectors.shape[1:]}; expected {channels} channels")
        if np.isinf(vectors).any():
            raise ValueError("a value is infinite or too large for float32")
        if self.rules["missing"] == "error" and np.isnan(vectors).any():
            raise ValueError("a value is missing; the model was trained without such")

    def scale(self, vectors: Any) -> Any:
        """Standardise each channel; missing values become 0, with an indicator beside if wanted."""
        limit = np.finfo(np.float32).max
        exact = (vectors - np.array(self.rules["mean"])) / np.array(self.rules["std"])
        scaled = np.clip(exact, -limit, limit).astype(np.float32)
        absent = np.isnan(scaled)
        scaled[absent] = 0
        masked = self.rules["missing"] == "mask"
        return np.concatenate((scaled, absent), axis=1, dtype=np.float32) if masked else scaled

    def probabilities(self, encoded: list[Any]) -> Any:
        """Return the probabilities (B, C) of encoded sequences; like lengths go together."""
        lengths = np.array([len(steps) for steps in encoded], dtype=np.int64)
        answers = np.empty((len(encoded), len(self.labels)), dtype=np.float32)
        order = np.argsort(lengths, kind="stable").tolist()
        while order:
            batch = order[-max(1, PADDED_STEPS // int(lengths[order[-1]])) :]
            del order[-len(batch) :]
            given = self.inputs([encoded[row] for row in batch])
            (answers[batch],) = self.session.run(["probabilities"], given)
        return answers

    def inputs(self, encoded: list[Any]) -> dict[str, Any]:
        """Return what model.onnx takes for a batch."""
        lengths, first = np.array([len(steps) for steps in encoded], dtype=np.int64), encoded[0]
        padded = np.zeros((len(encoded), lengths.max(), *first.shape[1:]), first.dtype)
        for row, steps in enumerate(encoded):
            padded[row, : len(steps)] = steps
        if self.rules["kind"] == "features":
            return {"features": padded, "lengths": lengths}
        given = {"input_ids": padded, "lengths": lengths}
        if self.rules["ngrams"]:
            found = [self.ngrams(np.where(ids < self.size, ids, UNK)) for ids in encoded]
            rows = np.arange(len(found)).repeat([len(numbers) for numbers, _ in found])
            numbers, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
            given |= {"ngrams": numbers, "ngram_rows": rows, "ngram_values": values}
        if self.rules["subwords"]:
            words = list(self.unknown)
            beyond, places = np.unique(padded[padded >= self.size], return_inverse=True)
            padded[padded >= self.size] = self.size + places
            grams = [buckets(words[i - self.size], **self.rules["subwords"]) for i in beyond]
            given["unknown_counts"] = np.array([len(each) for each in grams], dtype=np.int64)
            given["unknown_buckets"] = np.array([*chain.from_iterable(grams)], dtype=np.int64)
        return given

    def ngrams(self, ids: Any) -> tuple[Any, Any]:
        """Return the known n-grams of a sequence and their values, whose length is 1 together."""
        shortest, longest = self.rules["ngrams"]["shortest"], self.rules["ngrams"]["longest"]
        bounded = np.concatenate(([PAD], ids, [PAD]))
        keys, found = np.zeros(len(bounded) + 1, dtype=np.int64), []
        for size in range(1, longest + 1):
            keys = (keys[:-1] + bounded[size - 1 :] + 1) * MULTIPLIER  # wraps around
            keys ^= (keys >> 32) & LOW_HALF
            if size >= shortest:
                found.append(keys[1:-1] if size == 1 else keys)
        wanted = np.concatenate(found)
        known = self.tables["keys"]
        places = np.searchsorted(known, wanted).clip(max=len(known) - 1)
        numbers, times = np.unique(places[known[places] == wanted], return_counts=True)
        values = (1 + np.log(times)) * self.tables["idf"][numbers]
        return numbers, (values / np.sqrt((values**2).sum())).astype(np.float32)


def buckets(word: str, shortest: int, longest: int) -> list[int]:
    """Return the numbers of a word's character n-grams."""
    marked, grams = f"<{word}>", []
    for size in range(shortest, longest + 1):
        grams += [marked[start : start + size] for start in range(len(marked) - size + 1)]
    encoded = [gram.encode("utf-8", "surrogatepass") for gram in grams[:MOST_GRAMS]]
    return [zlib.crc32(gram) % BUCKETS for gram in encoded]


class Rows:
    """The sequences of a file, as it holds them; `line` is where reading has come to."""

    def __init__(self, path: str, rules: dict[str, Any]) -> None:
        self.path, self.kind, self.reading, self.line = path, rules["kind"], rules["reading"], 0
        self.file = ""

    def __iter__(self) -> Iterator[Any]:
        trained_on, name = self.reading["format"], self.path.lower()
        form = ENDINGS.get(os.path.splitext(name.removesuffix(".gz"))[1], trained_on)
        form = form if self.reading["by_name"] else trained_on
        if name != "-" and form == "txt" and self.reading["whole_files"]:
            yield from map(self.of_file, files_below(self.path))
            return
        if name == "-" or (form == "txt" and trained_on != "txt"):
            form = "lines"
        if form in ("ts", "npz", "parquet"):
            raise ValueError(
                f"format {form} isn't read here; give .jsonl, or .txt with a row a line"
            )
        with sys.stdin.buffer if name == "-" else opened(self.path) as stream:
            delimiter = self.delimiter(stream, form)
            lines = self.lines(stream)
            if form in ("csv", "tsv"):
                yield from self.table(lines, form, delimiter)
            elif form == "jsonl":
                yield from map(self.of_object, without_blanks(lines))
            else:
                for text in lines:
                    if form == "txt" and "\t" in text:
                        text = text.partition("\t")[2]
                    elif form == "fasttext":
                        text = re.sub(r"^\s*__label__[^ \t]*[ \t]*", "", text)
                    yield self.of_text(without_end(text))

    def of_file(self, path: str) -> Any:
        """Return a whole file as a sequence; `file` is its name."""
        self.file, self.line = path, 1
        with opened(path) as stream:
            return self.of_text(without_end(stream.read().decode("utf-8-sig")))

    def lines(self, stream: Iterable[bytes]) -> Iterator[str]:
        """Yield the lines with their ends, which are a line feed or a return and a line feed."""
        for self.line, raw in enumerate(stream, start=1):
            yield raw.decode("utf-8-sig" if self.line == 1 else "utf-8")

    def delimiter(self, stream: Any, form: str) -> str:
        """Return what separates the fields of a csv or tsv file, perhaps by its first lines."""
        if form != "csv" or self.reading["delimiter"] != "auto":
            return DELIMITERS.get(self.reading["delimiter"], "\t")
        *whole, rest = stream.peek().decode("utf-8-sig", "replace").split("\n")
        lines = [line.removesuffix("\r") for line in (whole or [rest])[:SNIFFED_LINES]]
        hint = EXCEL_HINT.fullmatch(lines[0])
        if hint:
            return hint[1]
        text = "\n".join(lines)
        bare = [x for x in QUOTED.sub("", text).split("\n") if x]
        if any(not found[1] for found in QUOTED.finditer(text)) and len(bare) > 1:
            bare.pop()  # the row goes on, in quotes, behind the first lines
        for delimiter in DELIMITERS.values():
            counts = {line.count(delimiter) for line in bare}
            if len(counts) == 1 and counts != {0}:
                return delimiter
        return DELIMITERS["comma"]

    def table(self, lines: Iterator[str], form: str, delimiter: str) -> Iterator[Any]:
        """Yield the rows of a csv or tsv file: the columns of the sequence, joined by a space."""
        quoting = self.reading["quoting"]
        if form == "csv":
            lines = (x for x in lines if self.line > 1 or not EXCEL_HINT.fullmatch(without_end(x)))
        records: Iterator[list[str]] = (without_end(line).split(delimiter) for line in lines)
        if quoting == "standard" or (quoting == "auto" and form == "csv"):
            csv.field_size_limit(1 << 28)
            records = (row or [""] for row in csv.reader(lines, delimiter=delimiter, strict=True))
        first = next(records, [])
        columns = self.reading["sequence"]
        if self.reading["header"]:
            columns = [c if isinstance(c, int) else first.index(c) for c in columns]
        elif first:
            records = chain([first], records)
        for record in without_blanks(records) if len(first) > 1 else records:
            if len(record) != len(first):
                raise ValueError(f"expected {len(first)} fields as in the first row")
            yield self.of_text(" ".join([record[column] for column in columns]))

    def of_object(self, line: str) -> Any:
        """Return the sequence in a line of jsonl."""
        row = json.loads(line)
        parts = [self.of_json(field(row, name)) for name in self.reading["sequence"]]
        if len(parts) == 1:
            return parts[0]
        return " ".join(parts) if self.kind == "text" else list(chain.from_iterable(parts))

    def of_text(self, text: str) -> Any:
        """Return a text, its symbols (split at blanks, or JSON), or vectors (JSON)."""
        if self.kind == "text":
            return text
        if self.kind == "tokens" and not (text.startswith('["') or INTEGERS.fullmatch(text)):
            return text.split()
        return self.of_json(json.loads(text) if text.strip() else [])

    def of_json(self, value: Any) -> Any:
        """Return the same from a JSON value; null is a missing value of a vector."""
        if isinstance(value, str) and self.kind != "features":
            return self.of_text(value)
        if self.kind == "text" or not isinstance(value, list):
            raise ValueError(f"{type(value).__name__} isn't a sequence of kind {self.kind}")
        if self.kind == "tokens":
            return list(map(str, value))
        with np.errstate(over="ignore"):
            vectors = np.array(value, dtype=np.float64).astype(np.float32)
        return vectors[:, None] if vectors.ndim == 1 else vectors


def files_below(path: str) -> Iterator[str]:
    """Yield a file, or the files of a folder and of those in it, in the order of their names."""
    if not os.path.isdir(path):
        yield path
        return
    for name in sorted(name for name in os.listdir(path) if not name.startswith(".")):
        yield from files_below(os.path.join(path, name))


def opened(path: str) -> Any:
    """Open a file of bytes, decompressed where its name ends in .gz."""
    if path.lower().endswith(".zst"):
        raise ValueError(f"zstd data isn't read here; decompress it first: zstd -d '{path}'")
    if not path.lower().endswith(".gz"):
        return open(path, "rb", BUFFER)
    packed: Any = gzip.GzipFile(path)
    return io.BufferedReader(packed, BUFFER)


def field(row: Any, name: str) -> Any:
    """Return a field of an object; `a.b` is the field b of the object a."""
    if not isinstance(row, dict) or not (name in row or "." in name):
        raise ValueError(f"no field {name!r}")
    if name in row:
        return row[name]
    first, _, rest = name.partition(".")
    return field(row.get(first), rest)


def without_end(line: str) -> str:
    """Return a line without its line feed, or return and line feed."""
    return line.removesuffix("\n").removesuffix("\r") if line.endswith("\n") else line


def without_blanks(rows: Iterable[Any]) -> Iterator[Any]:
    """Leave out blank rows at the end; others are errors."""
    blank = False
    for row in rows:
        if row == [""] or (isinstance(row, str) and not row.strip()):
            blank = True
        elif blank:
            raise ValueError("the line above is blank")
        else:
            yield row


def as_ascii(character: str) -> str:
    """Return a character of the same class for the regular expression PIECE."""
    if character.isascii():
        return character
    kind = unicodedata.category(character)[0]
    return "\t" if character in BLANKS else {"L": "a", "N": "0"}.get(kind, ".")


def cell(label: str, terminal: bool) -> str:
    """Return a label as tsv has it: quoted only where it would break the row."""
    text = '"' + label.replace('"', '""') + '"' if re.search(r"[\t\r\n]", label) else label
    escape = terminal and not text.isprintable()  # what could steer the terminal
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text) if escape else text


def load(folder: str) -> Model:
    """Return the model in a folder."""
    contents = {}
    for name in ("model.onnx", "preprocessing.json", "vocabulary.json"):
        with open(os.path.join(folder, name), "rb") as file:
            contents[name] = file.read()
    onnx, rules, vocabulary = contents.values()
    tables: Mapping[str, Any] = {}
    if json.loads(rules)["ngrams"]:
        tables = dict(np.load(os.path.join(folder, "ngrams.npz")))
    return Model(onnx, json.loads(rules), json.loads(vocabulary)["tokens"], tables)


def chunks(rows: Rows, model: Model) -> Iterator[list[tuple[str, Any]]]:
    """Yield file names and encoded sequences, ROWS together; rows before a bad one come first."""
    chunk: list[tuple[str, Any]] = []
    try:
        for sequence in rows:
            chunk.append((rows.file, model.encode(sequence)))
            if len(chunk) == ROWS:
                yield chunk
                chunk = []
    except Exception:
        yield chunk
        raise
    yield chunk


def rows_out(chunk: list[tuple[str, Any]], model: Model, terminal: bool) -> Iterator[str]:
    """Yield a line for each sequence of a chunk, empty cells for one that has no answer."""
    answers = iter(model.probabilities([steps for _, steps in chunk if steps is not None]))
    for file, steps in chunk:
        name = f"{cell(file, terminal)}\t" if file else ""
        if steps is None:
            yield f"{name}\t"
            continue
        answer = next(answers)
        best = int(answer.argmax())
        yield f"{name}{cell(model.labels[best], terminal)}\t{answer[best]:.6f}"
    model.unknown.clear()


def main() -> int:
    """Print the answers, return the exit code; a row that can't be read ends them."""
    arguments = sys.argv[1:]
    if arguments in (["-h"], ["--help"]) or len(arguments) != 1:
        print((__doc__ or "").strip(), file=sys.stdout if len(arguments) == 1 else sys.stderr)
        return 0 if len(arguments) == 1 else 2
    model = load(os.path.dirname(os.path.abspath(__file__)))
    rows, head, blanks = Rows(arguments[0], model.rules), "label\tprobability\n", 0
    output: Any = sys.stdout
    output.reconfigure(encoding="utf-8", newline="\n")
    try:
        for chunk in chunks(rows, model):
            if chunk:
                output.write("file\t" + head if head and rows.file else head)
                head = ""
            for line in rows_out(chunk, model, output.isatty()):
                output.write(line + "\n")
            blanks += sum(steps is None for _, steps in chunk)
        output.write(head)
        output.flush()
    except BrokenPipeError:  # nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())
        return 141
    except BAD_ROW as error:
        output.flush()
        place = f"{rows.file or rows.path}:{rows.line}" if rows.line else rows.path
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        print(f"{place}: {reason}", file=sys.stderr)
        return 2
    if blanks:
        print(f"{rows.path}: {blanks} empty sequences have no answer", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
