"""Base of the parts of a preprocessing that are saved with a model.

They are frozen dataclasses, and fields of the pydantic models that are read and written:
`seqtrain.runs.model_folder.Description`. An exported script needs no pydantic, so none of their
modules imports it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class Saved:
    """Base of the saved dataclasses: pydantic refuses other types and unknown keys."""

    __pydantic_config__: ClassVar[Any] = {
        "extra": "forbid",
        "strict": True,
        "allow_inf_nan": False,
        "arbitrary_types_allowed": True,
    }


def refuse(faults: Mapping[str, bool]) -> None:
    """Raise ValueError with the first fault that is True.

    Args:
        faults: Maps the description of each fault of an object to True if the object has it.
    """
    for fault, is_found in faults.items():
        if is_found:
            raise ValueError(fault)
