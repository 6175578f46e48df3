"""Power loss at any moment of a save: nothing takes a name, and nothing goes, before it is safe.

A disk may lose what wasn't flushed. So what is renamed is flushed before, with all that it holds;
the rename itself is flushed before what it replaces is removed; in the end nothing is loose. States
between two calls are those of a kill, which test_interrupted_saves.py goes through.
"""

import re
from pathlib import Path

import pytest

from tests.helpers.tracing import calls, copied, plain, save_new, trace

REMOVALS = ("unlink", "unlinkat", "rmdir")


@pytest.fixture
def lines(template, strace) -> list[str]:
    """The calls of a save."""
    code, lines = trace(strace, copied(template), save_new)
    assert code == 0
    return lines


def losses(folder: Path, lines: list[str]) -> list[str]:
    """Return what a power loss within or after a save could take, and shouldn't."""
    loose: set[str] = set()  # files and folders of which a write, or a name, isn't flushed
    renamed: set[str] = set()  # folders in which a rename isn't flushed
    found: list[str] = []
    for call in calls(lines, folder):
        paths = re.findall(rf"{re.escape(str(folder))}[^\"<>]*", plain(call.line))
        path, parents = paths[0], {str(Path(each).parent) for each in paths}
        if call.name == "fsync":
            loose.discard(path)
            renamed.discard(path)
        elif call.name == "write":
            loose.add(path)
        elif call.name in REMOVALS:
            found += [f"{each}: {path} is removed before its names are flushed" for each in renamed]
            loose.discard(path)
        elif call.name == "rename":
            inside = [each for each in loose if each == path or each.startswith(f"{path}/")]
            found += [f"{each} isn't flushed before it is renamed" for each in inside]
            loose |= parents
            renamed |= parents
        else:
            loose |= parents
    return found + [f"{each} isn't flushed in the end" for each in sorted(loose)]


def test_nothing_is_renamed_or_removed_before_it_is_safe(template, lines):
    names = [call.name for call in calls(lines, template.with_name("run"))]
    assert {"write", "fsync", "rename", "mkdir"} <= {*names}
    assert {*names} & {*REMOVALS}
    assert losses(template.with_name("run"), lines) == []


def test_missing_flushes_would_be_noticed(template, lines):
    """Of any file or folder."""
    flushed = {line.split("fsync(")[1] for line in lines if " fsync(" in line}
    assert len(flushed) > 5
    for each in flushed:
        assert losses(template.with_name("run"), [x for x in lines if f"fsync({each}" not in x])
