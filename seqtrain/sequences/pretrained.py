"""Frozen pretrained encoders: texts to vectors, by a local Hugging Face folder.

B texts, P pieces of the longest text of a batch, H numbers of a piece's state, E numbers of a
vector.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from seqtrain.errors import DataError, missing_package
from seqtrain.files.reading import json_of, read_file
from seqtrain.tables.blocks import Float32s
from seqtrain.tables.opening import file_digest
from seqtrain.text import display_name, quote

ENCODER_FILES = ("config.json", "tokenizer.json", "model.safetensors")
"""Files that an encoder's folder must have. Nothing else of the folder is used but POOLING."""
POOLING = "1_Pooling/config.json"
"""File of sentence-transformers that names the pooling. Without it, states are averaged."""
SENTENCE_POOLINGS = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "first"}
"""Maps the keys of POOLING that are supported to the name of the pooling."""
UNSAFE = ("pytorch_model.bin", "model.pt", "tf_model.h5", "flax_model.msgpack")
"""Files of weights that aren't read: loading a pickle runs code of whoever wrote it."""
MOST_PIECES = 512
"""Largest number of pieces of a text; the rest of a longer text is left out."""
PIECES_PER_BATCH = 4096
"""Largest number of pieces of a batch, with padding. Larger batches aren't faster on a CPU."""
LAYERS = 4
"""Number of layers whose states are read, at equal distances from the middle to the last one.

The last layer of an encoder of sentences tells topics apart, and less how something is said.
"""
OTHER_LAYERS = 0.7
"""Length of the mean of a layer that isn't the last one."""
CHUNK = 4096
"""Number of texts whose pieces are held at once."""
LAYER_NAMES = ("num_hidden_layers", "n_layers", "n_layer", "num_layers")
"""Usual names of the number of layers in the config of an encoder."""
MOST_LAYERS = 1000
"""Largest number of layers of an encoder."""
MOST_TENSORS = 100_000
"""Largest number of tensors of an encoder. One with 1,000 layers of BERT has 16,000."""
LARGEST_STATE = 2**16
"""Largest number of numbers of a hidden state."""
FEWEST_CACHED = 100
"""Smallest number of texts whose vectors are kept: fewer are computed in a second."""
MOST_CACHED = 2**31
"""Largest size of all files of the cache together, in bytes."""
LARGEST_TEXT = 2**28
"""Largest size of a JSON file of the folder, in bytes. Vocabularies take up to 30 MB."""


class PretrainedEncoder:
    """A frozen transformer that turns a text into the means of its pieces' states.

    A vector has the means of `LAYERS` layers, one after another. That of the last layer has the
    length 1, the others have the length `OTHER_LAYERS`. The encoder computes in float32: bfloat16
    took 1.5 times as long on a CPU, and vectors stay comparable between devices. The code of the
    model is that of the package transformers. The folder's own code is never run, and pickles
    aren't read. The transformer is loaded when the first text is encoded.

    Args:
        folder: Folder with `ENCODER_FILES` and, of sentence-transformers, POOLING.
        device: Device of the computation: "auto", or a name as torch has it.
        is_stored: True if the folder is in a model folder, whose files never change.
        cache: Folder in which vectors are kept, or None to keep none.

    Attributes:
        folder: The same folder.
        digest: SHA-256 of the names and contents of the files that are used.
        digests: SHA-256 of each of these files, by its path.
        layers: Number of layers that are read.
        state_size: Number of numbers of a state, H.
        size: Number of numbers of a vector, E: the product of both.

    Raises:
        DataError: If the folder lacks a file, or one isn't sound.
    """

    def __init__(
        self,
        folder: str | Path,
        device: str = "auto",
        cache: Path | None = None,
        *,
        is_stored: bool = False,
    ) -> None:
        self.folder = Path(folder)
        check_folder(self.folder)
        self.digests = {}
        total = hashlib.sha256()
        for name in used_files(self.folder):
            path = str(self.folder / name)
            self.digests[path] = file_digest(path)
            total.update(f"{name} {self.digests[path]}\n".encode())
        self.digest = total.hexdigest()
        self._config = _read_object(self.folder / "config.json")
        self._layers = layers_to_read(self._config)
        state = _number_in(self._config, ("hidden_size", "d_model", "dim", "n_embd"), LARGEST_STATE)
        if state is None:
            raise DataError(
                f"{self.folder / 'config.json'}: no hidden_size; expected the config of an "
                "encoder of transformers"
            )
        self.layers = len(self._layers)
        self.state_size = state
        self.size = self.layers * self.state_size
        self._pooling = read_pooling(self.folder)
        self.device = device
        self._cache = cache
        self.is_stored = is_stored
        self._parts: tuple[Any, Any] | None = None

    def __eq__(self, other: object) -> bool:
        """Return True for the same files, wherever they are: a resumed run reads both copies."""
        if not isinstance(other, PretrainedEncoder):
            return NotImplemented
        return self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def load(self) -> None:
        """Load the tokenizer and the transformer, if they aren't loaded yet.

        Raises:
            ConfigError: If transformers or tokenizers isn't installed.
            DataError: If a file isn't sound.
        """
        if self._parts is None:
            model = _load_model(self.folder, self._config)
            if int(model.config.hidden_size) != self.state_size:
                raise DataError(f"{self.folder / 'config.json'}: names several sizes of a state")
            if self._layers[0] not in (-1, model.config.num_hidden_layers):
                raise DataError(f"{self.folder / 'config.json'}: names several numbers of layers")
            tokenizer = _truncating_tokenizer(self.folder, self._config)
            self._parts = tokenizer, model.to(_device(self.device))

    def encode(self, texts: Sequence[str]) -> Float32s:
        """Return the vector of each text, (B, E).

        Many texts are looked up in the cache first. On a terminal, a bar shows the progress.

        Raises:
            ConfigError: If transformers or tokenizers isn't installed.
            DataError: If a file of the folder isn't sound.
        """
        path = None
        if self._cache is not None and len(texts) >= FEWEST_CACHED:
            path = self._cache / f"{_digest_of(self, texts)}.npy"
            found = _load_vectors(path, (len(texts), self.size))
            if found is not None:
                return found
        from tqdm.auto import tqdm

        self.load()
        vectors = np.empty((len(texts), self.size), np.float32)
        with tqdm(total=len(texts), desc="encoder", unit=" rows", delay=1, disable=None) as bar:
            for start in range(0, len(texts), CHUNK):
                part = list(texts[start : start + CHUNK])
                vectors[start : start + len(part)] = self._encode_chunk(part)
                bar.update(len(part))
        if path is not None:
            _save_vectors(path, vectors)
        return vectors

    def _encode_chunk(self, texts: list[str]) -> Float32s:
        import torch

        # An exported script, which needs neither, has no configs and plans.
        from seqtrain.config.schema import BatchingConfig
        from seqtrain.sequences.plan import plan_in_order_of_length

        assert self._parts is not None
        batching = BatchingConfig(max_tokens=PIECES_PER_BATCH)
        pieces = [encoding.ids for encoding in self._parts[0].encode_batch(texts)]
        lengths = np.array([len(each) for each in pieces]).clip(1)
        vectors = np.empty((len(texts), self.size), np.float32)
        with torch.inference_mode():
            for rows in plan_in_order_of_length(lengths, batching):
                of_batch = [pieces[row] for row in rows.tolist()]
                vectors[rows] = self._batch_vectors(of_batch).cpu().numpy()
        return vectors

    def _batch_vectors(self, pieces: list[list[int]]) -> Any:
        """Return the vectors of texts of similar length, (B, E), on the device.

        Args:
            pieces: Ids of each text's pieces.
        """
        import torch
        from torch.nn.utils.rnn import pad_sequence

        assert self._parts is not None
        model = self._parts[1]
        lengths = torch.tensor([len(each) for each in pieces])
        ids = pad_sequence([torch.tensor(each, dtype=torch.long) for each in pieces], True)
        mask = torch.arange(ids.shape[1]) < lengths[:, None]
        ids = ids.to(model.device)
        mask = mask.to(model.device)
        read = len(self._layers) > 1
        found = model(input_ids=ids, attention_mask=mask.long(), output_hidden_states=read)
        states = [found.last_hidden_state]
        if read:
            states += [found.hidden_states[layer] for layer in self._layers[1:]]
        last, *others = [_pooled(each.float(), mask, self._pooling) for each in states]
        return torch.cat([last, *(OTHER_LAYERS * each for each in others)], dim=1)


def default_cache() -> Path | None:
    """Return the folder of kept vectors, or None if the system has no folder for a cache.

    It is in $SEQTRAIN_CACHE if this variable is set, else in the user's cache folder.
    """
    from platformdirs import user_cache_path

    chosen = os.environ.get("SEQTRAIN_CACHE")
    if chosen:
        folder = Path(chosen)
    else:
        folder = user_cache_path("seqtrain", appauthor=False)
    if chosen or folder.is_absolute():
        return folder / "vectors"
    return None


def _device(name: str) -> Any:
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(name)


def _pooled(states: Any, mask: Any, pooling: str) -> Any:
    """Return the state of each text's first piece, or the mean over its pieces, with length 1.

    Args:
        states: States of one layer, (B, P, H).
        mask: True where a text has a piece, (B, P).
        pooling: "first" or "mean".
    """
    import torch

    valid = mask[:, :, None]
    mean = (states * valid).sum(1) / valid.sum(1).clamp(min=1)
    return torch.nn.functional.normalize(states[:, 0] if pooling == "first" else mean, dim=1)


def layers_to_read(config: dict[str, Any]) -> list[int]:
    """Return the numbers of the layers whose states are read, from 1, the last one first.

    If the config doesn't say under a usual name how many there are, it is only the last, -1.
    """
    count = _number_in(config, LAYER_NAMES, MOST_LAYERS)
    if count is None:
        return [-1]
    shares = np.linspace(0.5, 1.0, LAYERS).tolist()
    return sorted({max(1, round(count * share)) for share in shares}, reverse=True)


def _number_in(config: dict[str, Any], names: Sequence[str], most: int) -> int | None:
    """Return the number from 1 to `most` that has one of some names, or None."""
    for name in names:
        number = config.get(name)
        if isinstance(number, int) and 0 < number <= most:
            return number
    return None


def check_folder(folder: Path) -> None:
    """Raise DataError if a folder lacks a file of an encoder, or has only weights in a pickle."""
    shown = display_name(str(folder))
    if not folder.is_dir():
        raise DataError(f"model.pretrained: {shown} is no folder; expected a Hugging Face folder")
    missing = [name for name in ENCODER_FILES if not (folder / name).is_file()]
    if not missing:
        return
    unsafe = [name for name in UNSAFE if (folder / name).exists()]
    if "model.safetensors" in missing and unsafe:
        raise DataError(
            f"model.pretrained: {shown} has its weights in {unsafe[0]}, which isn't read because "
            "loading it could run code; save the model again as model.safetensors "
            "(save_pretrained of transformers does)"
        )
    raise DataError(
        f"model.pretrained: {shown} has no {', '.join(missing)}; "
        f"expected a folder with {', '.join(ENCODER_FILES)}"
    )


def used_files(folder: Path) -> list[str]:
    """Return the names of the files of a folder that an encoder reads."""
    return [*ENCODER_FILES, *([POOLING] if (folder / POOLING).is_file() else [])]


def read_pooling(folder: Path) -> str:
    """Return the pooling of an encoder's folder: "mean" or "first".

    Raises:
        DataError: If sentence-transformers' file asks for another pooling.
    """
    path = folder / POOLING
    if not path.is_file():
        return "mean"
    settings = _read_object(path)
    chosen = [
        key for key, value in settings.items() if key.startswith("pooling_mode") and value is True
    ]
    if len(chosen) == 1 and chosen[0] in SENTENCE_POOLINGS:
        return SENTENCE_POOLINGS[chosen[0]]
    named = settings.get("pooling_mode")  # the form of newer versions
    if not chosen and named in ("mean", "cls"):
        if named == "cls":
            return "first"
        return "mean"
    raise DataError(
        f"{path}: found the pooling {quote(', '.join(chosen) or str(named))}; "
        "expected the mean of all pieces or the first piece (cls)"
    )


def _read_object(path: Path) -> dict[str, Any]:
    value = json_of(path, read_file(path, LARGEST_TEXT))
    if not isinstance(value, dict):
        raise DataError(f"{path}: expected a JSON object")
    return value


def load_tokenizer(path: Path, needed_for: str, extra: str) -> Any:
    """Return the tokenizer of a JSON file, without padding.

    Args:
        path: The file.
        needed_for: Key of the config that needs it, for messages.
        extra: Extra of this package that installs the package tokenizers.

    Raises:
        ConfigError: If the package tokenizers isn't installed.
        DataError: If the file isn't sound.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise missing_package(needed_for, "tokenizers", extra) from None
    try:
        tokenizer = Tokenizer.from_str(read_file(path, LARGEST_TEXT).decode())
    except Exception as error:  # tokenizers raises Exception itself
        raise DataError(f"{path}: not a tokenizer ({error})") from None
    tokenizer.no_padding()
    return tokenizer


def _truncating_tokenizer(folder: Path, config: dict[str, Any]) -> Any:
    tokenizer = load_tokenizer(folder / "tokenizer.json", "model.pretrained", "pretrained")
    most = config.get("max_position_embeddings")
    # RoBERTa numbers positions from pad_token_id + 1, so that two of them can't be used.
    if isinstance(most, int) and most > 2:
        most = min(MOST_PIECES, most - 2)
    else:
        most = MOST_PIECES
    own = tokenizer.truncation
    if own is None or own["max_length"] > most:
        tokenizer.enable_truncation(most)
    return tokenizer


def _load_model(folder: Path, config: dict[str, Any]) -> Any:
    """Return the transformer of a folder, frozen and in evaluation mode."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        import transformers
    except ImportError:
        raise missing_package("model.pretrained", "transformers", "pretrained") from None
    kind = config.get("model_type")
    if kind not in transformers.CONFIG_MAPPING or "auto_map" in config:
        raise DataError(
            f"{folder / 'config.json'}: found the model type {quote(str(kind))}; expected one "
            "that transformers has, without code of its own (auto_map)"
        )
    _check_layers(folder, config)
    transformers.utils.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        _check_size(folder, transformers.AutoConfig.from_pretrained(str(folder)))
        model, report = transformers.AutoModel.from_pretrained(
            str(folder),
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
    except DataError:
        raise
    except Exception as error:  # each architecture raises errors of its own
        reason = str(error).strip().partition("\n")[0][:200]
        shown = display_name(str(folder))
        raise DataError(f"{shown}: transformers can't load it ({reason})") from None
    # transformers fills missing tensors with random numbers. The pooler isn't used here.
    missing = sorted(name for name in report["missing_keys"] if "pooler" not in name)
    if missing:
        raise DataError(
            f"{folder / 'model.safetensors'}: lacks {len(missing)} tensors of a {kind} model, "
            f"such as {quote(missing[0])}; expected the folder of a complete encoder"
        )
    return model.eval().requires_grad_(False)


def _check_layers(folder: Path, config: dict[str, Any]) -> None:
    """Raise DataError if a config asks for more than `MOST_LAYERS` layers, under any name.

    Some configs of transformers make a list with an entry for each layer when they are read.
    """
    for name, value in config.items():
        if isinstance(value, dict):
            _check_layers(folder, value)
        is_number = name.endswith(("layer", "layers")) and isinstance(value, int | float)
        if is_number and value > MOST_LAYERS:
            path = folder / "config.json"
            raise DataError(f"{path}: {name}: found {value}; expected at most {MOST_LAYERS:,}")


def _check_size(folder: Path, config: Any) -> None:
    """Raise DataError if a model would need more numbers than the file of its weights has.

    A config of a few bytes may ask for terabytes, or for millions of modules without memory. So
    nothing is allocated before this check, which ends as soon as there are too many tensors.
    """
    import torch
    import transformers

    tensors = 0

    def count(module: Any, name: str, tensor: Any) -> None:
        nonlocal tensors
        tensors += 1
        if tensors > MOST_TENSORS:
            raise DataError(
                f"{folder / 'config.json'}: describes a model of more than {MOST_TENSORS:,} "
                "tensors; expected a smaller encoder"
            )

    counting = torch.nn.modules.module.register_module_parameter_registration_hook(count)
    try:
        with torch.device("meta"):
            model = transformers.AutoModel.from_config(config)  # type: ignore[no-untyped-call]
    finally:
        counting.remove()
    numbers = sum(each.numel() for name, each in model.named_parameters() if "pooler" not in name)
    held = (folder / "model.safetensors").stat().st_size
    if numbers > held:
        raise DataError(
            f"{folder / 'config.json'}: describes a model of {numbers:,} numbers, but "
            f"model.safetensors has {held:,} bytes; expected files of one model"
        )


def _digest_of(encoder: PretrainedEncoder, texts: Sequence[str]) -> str:
    total = hashlib.sha256(encoder.digest.encode())
    for text in texts:
        content = text.encode("utf-8", "surrogatepass")
        total.update(len(content).to_bytes(8, "little"))
        total.update(content)
    return total.hexdigest()


def _load_vectors(path: Path, shape: tuple[int, int]) -> Float32s | None:
    try:
        vectors = np.load(path, allow_pickle=False)
        os.utime(path)
    except (OSError, ValueError, EOFError):
        return None
    is_sound = vectors.dtype == np.float32 and vectors.shape == shape
    return vectors if is_sound and np.isfinite(vectors).all() else None


def _save_vectors(path: Path, vectors: Float32s) -> None:
    """Write vectors, completely or not at all. A folder that can't be written is no error."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(unfinished, "wb") as file:
            np.save(file, vectors)
        os.replace(unfinished, path)
        _remove_oldest(path.parent)
    except OSError:
        with suppress(OSError):
            unfinished.unlink()


def _remove_oldest(folder: Path) -> None:
    """Remove the least recently used files until `MOST_CACHED` bytes are left."""
    files = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime, reverse=True)
    total = 0
    for file in files:
        total += file.stat().st_size
        if total > MOST_CACHED:
            file.unlink()
