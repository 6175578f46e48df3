"""The session of the front page, as the program prints it: compared with the page, or written.

Run it in the folder of the project: `python tests/session.py` exits with 1 if the page shows other
figures, and `python tests/session.py --write` mends the page. Speeds aren't compared, and stay as
they are on the page, since they need an idle machine.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from difflib import unified_diff
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "README.md"
PROGRAM = [sys.executable, "-m", "seqtrain"]
ASKED = "move 20 from savings to checking\nmove 20 from checking to savings\n"
SESSION = re.compile(r"(?<=```\n)\$ seqtrain fit configs/quickstart.yaml\n.*?(?=```)", re.DOTALL)
STAMP = re.compile(r"\d{8}-\d{6}")
SPEEDS = re.compile(r"(?<=e-\d\d) +[\d,]+ +[\d.]+$", re.MULTILINE)
"""Tokens per second and seconds at the end of an epoch's row."""
SHOWN = re.compile(
    r"12 classes|rows |tokens |length: median|[\d,]+ parameters|at most|run directory|epoch "
    r"|[128] \*|best epoch|scored on|test |next:|runs/"
)
"""Beginnings of the lines that the page shows."""


def run(folder: str, *words: str, stdin: str = "") -> list[str]:
    """Run a command in a folder, and return the lines of its output."""
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    own = {**os.environ, "PYTHONPATH": paths, "COLUMNS": "100"}
    ended = subprocess.run(
        [*PROGRAM, *words],
        cwd=folder,
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        env=own,
        check=True,
    )
    return ended.stdout.splitlines()


def shortened(lines: list[str]) -> list[str]:
    """Return the lines that the page shows, with "…" where others are left out."""
    found, last = [""], ""
    for line in lines:
        is_rule = line.strip().startswith("──") and SHOWN.match(last.strip()) is not None
        if is_rule or SHOWN.match(line.strip()):
            found.append(line.rstrip())
        elif line.strip() and found[-1] != "…":
            found.append("…")
        last = line
    return found


def session() -> str:
    """Return the session of the front page."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("configs", "data"):
            shutil.copytree(ROOT / name, Path(folder, name))
        trained = shortened(run(folder, "fit", "configs/quickstart.yaml"))
        answers = [line for line in run(folder, "predict", "-", stdin=ASKED) if "\t" in line]
    asked = ASKED.replace("\n", "\\n")
    lines = ["$ seqtrain fit configs/quickstart.yaml", *trained, ""]
    lines += [f"$ printf '{asked}' | seqtrain predict -", *answers]
    return "\n".join(lines) + "\n"


def main() -> int:
    page = PAGE.read_text(encoding="utf-8")
    shown = SESSION.search(page)
    assert shown is not None
    stamp = STAMP.search(shown[0])
    assert stamp is not None
    printed = STAMP.sub(stamp[0], session())
    speeds = iter(SPEEDS.findall(shown[0]))
    printed = SPEEDS.sub(lambda found: next(speeds, found[0]), printed)
    if "--write" in sys.argv:
        PAGE.write_text(page.replace(shown[0], printed), encoding="utf-8")
        return 0
    texts = [text.splitlines(keepends=True) for text in (shown[0], printed)]
    difference = [*unified_diff(*texts, "README.md", "printed")]
    sys.stderr.writelines(difference)
    return 1 if difference else 0


if __name__ == "__main__":
    sys.exit(main())
