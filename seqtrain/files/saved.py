"""Saved JSON objects: frozen models with strict types, read from files that anyone may write."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from seqtrain.errors import CheckpointError
from seqtrain.files.reading import read_file
from seqtrain.text import shorten

Object = TypeVar("Object", bound="SavedObject")


class SavedObject(BaseModel):
    """Base of the objects that are saved as a JSON file each. Unknown keys are refused."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False
    )

    @classmethod
    def read(cls: type[Object], path: Path, content: bytes | None = None) -> Object:
        """Return the object in a file.

        Args:
            path: Path of the file.
            content: Content of the file if it was read already, or None to read it.

        Raises:
            CheckpointError: If the file is missing, isn't JSON, or a value in it is missing,
                unknown, of a wrong type, or out of range. The message names the key.
            RunError: If the machine fails while reading.
        """
        try:
            return cls.model_validate_json(read_file(path) if content is None else content)
        except ValidationError as error:
            raise CheckpointError(f"{path}: {invalid(error)}; restore it from a copy") from None

    def to_json(self, exclude: Any = None) -> bytes:
        """Return the content of the file: indented UTF-8 with a final newline.

        Args:
            exclude: Attributes to leave out, as `pydantic.BaseModel.model_dump_json` takes them.
        """
        return (self.model_dump_json(indent=2, exclude=exclude) + "\n").encode()


def invalid(error: ValidationError) -> str:
    """Return the first problem of a saved value as one line: its key, and what is wrong.

    Neither a value nor a long key of the file is shown in full.
    """
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(shorten(str(step), 40) for step in first["loc"])
    said = first["msg"].removeprefix("Value error, ")
    if place == "format_version" and first["type"] == "literal_error":
        said = f"this seqtrain reads version {first['ctx']['expected']}"
    return shorten(f"{place}: {said}" if place else said, 150)
