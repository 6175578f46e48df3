"""The script of an exported model, run in this process."""

import io
import runpy
import sys
from pathlib import Path

import pytest

from tests.helpers.tiny import Ended


def by_script(port: Path, *words: object, stdin: str = "") -> Ended:
    """Run the script in an exported folder."""
    out, err, code = io.TextIOWrapper(io.BytesIO()), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["predict.py", *map(str, words)])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        patch.setattr(sys, "path", [*sys.path])
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        try:
            runpy.run_path(str(port / "predict.py"), run_name="__main__")
        except SystemExit as ended:
            code = int(str(ended.code))
        out.seek(0)
        return Ended(code, out.buffer.read().decode(), err.getvalue())
