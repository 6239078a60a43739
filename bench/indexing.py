"""Code: how fast files are walked, parsed and indexed, how flat in memory, and how well references to symbols are told."""

from __future__ import annotations

import asyncio
import resource
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from recollect import Memory
from recollect.code.mentions import mentions_of, referenced
from recollect.code.symbols import symbols_of
from recollect.code.walking import source_files, source_text
from tests.mentioned import LABELLED, SCOPES
from tests.mentioned import ROOT as LABELLED_ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recollect.code.walking import SourceFile

ROOT = Path(__file__).parent.parent


def _without_packages(root: Path) -> Iterator[SourceFile]:
    return (file for file in source_files(root) if "site-packages/" not in file.path)


def _read(roots: list[Path]) -> tuple[int, int, float]:
    files = symbols = 0
    before = time.process_time()
    for root in roots:
        for file in _without_packages(root):
            text = source_text(root, file)
            if text is not None:
                files += 1
                symbols += len(symbols_of(text, file.language))
    return files, symbols, time.process_time() - before


def measure() -> dict[str, float]:
    """Return files and symbols for each CPU-second, of this repository and of the standard library."""
    symbols_of("def warm(): pass\n", "python")
    found: dict[str, float] = {}
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name, roots in {
        "repository": [ROOT / "src", ROOT / "tests"],
        "standard_library": [Path(sysconfig.get_paths()["stdlib"])],
    }.items():
        files, symbols, spent = _read(roots)
        assert files
        assert symbols > files
        found[f"{name}_files"] = files
        found[f"{name}_files_per_cpu_second"] = round(files / spent)
        found[f"{name}_symbols_per_cpu_second"] = round(symbols / spent)
    after_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found["peak_memory_grew_mb"] = round((after_kb - before_kb) / 1_024)
    return {**found, **asyncio.run(_indexed()), **_references()}


async def _indexed() -> dict[str, float]:
    """Index this repository into a file, and again when nothing has changed."""
    with tempfile.TemporaryDirectory() as folder:
        async with await Memory.open(f"sqlite://{Path(folder) / 'code.db'}", worker=False) as memory:
            spent: list[float] = []
            files = 0
            for _ in range(2):
                before = time.process_time()
                files = (await memory.index(ROOT)).files
                spent.append(time.process_time() - before)
    return {"indexed_files_per_cpu_second": round(files / spent[0]), "unchanged_files_per_cpu_second": round(files / spent[1])}


def _references() -> dict[str, float]:
    """Compare what is found in the labelled sentences with what somebody said is there."""
    told = right = wanted = 0
    for text, labels in LABELLED:
        mentions = mentions_of(text, LABELLED_ROOT)
        found = set(referenced(mentions, [one for one in SCOPES if {one.name, one.qualified} & mentions.names], SCOPES, "shop"))
        told, right, wanted = told + len(found), right + len(found & set(labels)), wanted + len(labels)
    return {"reference_precision": round(right / told, 3), "reference_recall": round(right / wanted, 3), "references_labelled": wanted}
