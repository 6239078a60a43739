"""Cold start: CPU of whole processes, as a ratio to a Python that does nothing; as a user installs it, without what development needs."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

_RUNS = 25


def _cpu_ms(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1_000


def measure() -> dict[str, float]:
    """Measure in turns, so that noise falls on all alike."""
    programs = Path(__file__).parent.parent / "build" / "installed" / "bin"
    if not programs.exists():
        sys.exit("there is no installation to measure: run `make bench`")
    program, python = str(programs / "recollect"), str(programs / "python")
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "memory.db")
        subprocess.run([program, "--store", store, "new", "--project", "p"], check=True, capture_output=True)
        commands = {
            "python_c_pass": [python, "-c", "pass"],
            "version": [program, "--version"],
            "conversations": [program, "--store", store, "conversations"],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for n in range(_RUNS + 1):
            for name, command in commands.items():
                spent = _cpu_ms(command)
                if n > 0:  # the first round warms the disk's cache
                    times[name].append(spent)
    medians = {name: statistics.median(found) for name, found in times.items()}
    return {
        **{f"{name}_cpu_ms": round(value, 1) for name, value in medians.items()},
        "version_ratio": round(medians["version"] / medians["python_c_pass"], 2),
        "conversations_ratio": round(medians["conversations"] / medians["python_c_pass"], 2),
    }
