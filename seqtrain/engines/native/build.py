"""Build hook of hatchling that compiles the native engine if there is a C++ compiler.

To compile it by hand, run `python seqtrain/engines/native/build.py`.
"""

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

LIBRARY = "libseqtrain.so"

FLAGS = (
    "-std=c++17",
    "-O3",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wno-psabi",
)

MACHINE = os.environ.get("_PYTHON_HOST_PLATFORM", "").rpartition("-")[2] or platform.machine()
"""Processor to compile for, with the name that Python's cross-builds use."""

PATHS: dict[str, tuple[str, ...]] = {"portable": ()}
"""Maps each vector path to its compiler flags. The program chooses the path when it runs.

The path bfloat16 has matrix products of bfloat16 numbers. It is left out if the compiler doesn't
know its flag.
"""

if MACHINE in {"x86_64", "AMD64"}:
    PATHS = {
        "portable": (),
        "avx2": ("-mavx2", "-mfma"),
        "avx512": ("-mavx2", "-mfma", *(f"-mavx512{part}" for part in ("f", "bw", "dq", "vl"))),
    }
    PATHS["bfloat16"] = (*PATHS["avx512"], "-mavx512bf16")
elif MACHINE in {"aarch64", "arm64"}:
    PATHS = {"neon": (), "bfloat16": ("-march=armv8.2-a+bf16",)}


def sources_digest() -> str:
    """Return 16 hexadecimal digits that change with the C++ sources."""
    digest = hashlib.sha256()
    for path in sorted([*HERE.glob("*.h"), *HERE.glob("*.cpp")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def compile_library(target: Path, extra: Sequence[str] = ()) -> str:
    """Compile the library with the first compiler that succeeds.

    Each compiler is tried with all `PATHS`, then without bfloat16.

    Args:
        target: Path of the library. It is replaced atomically, so that a running process keeps the
            old one.
        extra: More options of the compiler.

    Returns:
        An error message of one line, or "" if the library was compiled.
    """
    problem = "no C++ compiler was found"
    older = {name: flags for name, flags in PATHS.items() if name != "bfloat16"}
    for compiler, paths in product(_compilers(), (PATHS, older)):
        with tempfile.TemporaryDirectory() as folder:
            built = Path(folder, LIBRARY)
            error = _compile([*compiler, *FLAGS, *extra], paths, Path(folder), built)
            if not error:
                return _put(built, target)
            problem = f"{compiler[0]}: {error}"
    return problem


def _put(built: Path, target: Path) -> str:
    try:
        shutil.copyfile(built, target.with_suffix(".new"))
        target.with_suffix(".new").replace(target)
    except OSError as error:
        return f"{target.parent}: {error.strerror or error}"
    return ""


def _compilers() -> Iterator[list[str]]:
    configured = sysconfig.get_config_var("CXX") or ""
    for command in (os.environ.get("CXX", ""), "c++", "g++", "clang++", configured):
        words = shlex.split(command)
        if words and shutil.which(words[0]):
            yield words


def _compile(
    command: list[str], paths: dict[str, tuple[str, ...]], folder: Path, target: Path
) -> str:
    """Compile vector paths in parallel, and link them to one library.

    Args:
        command: Command of the compiler with common options.
        paths: Maps the name of each vector path to its options.
        folder: Folder for object files.
        target: Path of the library.

    Returns:
        The first error message, or "" without an error.
    """
    objects = [str(folder / f"{name}.o") for name in paths]
    jobs = [
        [*command, *flags, f"-DSEQTRAIN_PATH={name}", "-c", str(HERE / "kernels.cpp"), "-o", result]
        for (name, flags), result in zip(paths.items(), objects, strict=True)
    ]
    running = [subprocess.Popen(job, stderr=subprocess.PIPE, text=True) for job in jobs]
    errors = [process.communicate()[1] for process in running]
    for process, error in zip(running, errors, strict=True):
        if process.returncode:
            return _first_error(error)
    defined = [f'-DSEQTRAIN_SOURCES="{sources_digest()}"', *(f"-DHAS_{name}" for name in paths)]
    source = str(HERE / "dispatch.cpp")
    link = [*command, *defined, "-shared", "-pthread", source, *objects, "-o", str(target)]
    linked = subprocess.run(link, stderr=subprocess.PIPE, text=True, check=False)
    if linked.returncode:
        return _first_error(linked.stderr)
    return ""


def _first_error(output: str) -> str:
    lines = [line for line in output.splitlines() if "error" in line] or output.splitlines()
    if lines:
        return lines[0].strip()
    return "failed without an error message"


if "hatchling" in sys.modules:  # hatchling is building a wheel
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface

    class NativeBuild(BuildHookInterface[Any]):
        """Build hook that adds the compiled library to the wheel.

        For an editable install, it writes the library next to the sources.
        """

        PLUGIN_NAME = "custom"

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Compile the library, and mark the wheel as platform-specific if that succeeds.

            Only an editable install writes into the folder of the sources, which may be read-only.
            Without the library, hatchling shows a warning, and seqtrain is installed without the
            native engine.
            """
            self._folder = tempfile.TemporaryDirectory()
            built = Path(self._folder.name, LIBRARY)
            editable = version == "editable"
            problem = compile_library(built)
            if not problem and editable:
                problem = _put(built, HERE / LIBRARY)
            if problem:
                self.app.display_warning(f"built without the native engine: {problem}")
                return
            build_data["pure_python"] = False
            platform_tag = os.environ.get("_PYTHON_HOST_PLATFORM")
            if platform_tag:  # the library works with every Python, through ctypes
                build_data["tag"] = f"py3-none-{platform_tag.replace('-', '_').replace('.', '_')}"
            else:
                build_data["infer_tag"] = True
            if not editable:
                inside = f"seqtrain/engines/native/{LIBRARY}"
                build_data["force_include"][str(built)] = inside

        def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
            """Remove the temporary folder after the wheel is packed."""
            self._folder.cleanup()


if __name__ == "__main__":
    sys.exit(compile_library(HERE / LIBRARY) or None)
