"""`make bench`: every benchmark, as a table and as `build/bench.json`; ratios are measured within one run."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

os.environ["RECOLLECT_WORKER"] = "off"  # what is measured is measured alone

from bench import audit, cold_start, distill, http_door, indexing, recall, record, redaction, speed, stores, transcripts  # noqa: E402  the path comes first

AIMS = {
    "record.ratio_p50": "≤ 2.0",
    "record.ratio_sync_p50": "≤ 2.0",
    "bulk.record_wall_ms_p99": "< 100 on an idle machine",
    "redaction.generated_mb_per_cpu_second": "≥ 20",
    "redaction.transcripts_mb_per_cpu_second": "≥ 20",
    "cold_start.version_ratio": "≤ 4",
    "cold_start.conversations_ratio": "≤ 8",
    "distill.turns_per_cpu_second": "≥ 200",
    "distill.locomo_level_1_against_leading_of_5_to_9": "≥ 1.3",
    "distill.locomo_level_2_against_leading_of_5_to_9": "≥ 1.3",
    "recall.shipped_weights_on_5_to_9": "≥ 69 / 77 / – / 86.5; aim 72 / 80 / – / 88",
    "recall.weights_of_5_to_9_on_0_to_4": "≥ 69 / 77 / – / 86.5; aim 72 / 80 / – / 88",
    "speed.search_in_a_project_cpu_ms_at_100_000": "≤ 10",
    "speed.search_over_everything_cpu_ms_at_100_000": "≤ 15",
    "speed.context_cpu_ms_at_100_000": "≤ 30",
    "speed.search_in_a_project_growth": "< 8",
    "speed.search_over_everything_growth": "< 8",
    "speed.context_growth": "< 8",
    "http.ratio": "≤ 3",
    "audit.why_of_a_file_cpu_ms": "≤ 50",
    "audit.why_of_a_line_cpu_ms": "≤ 50",
    "audit.flow_of_a_request_cpu_ms": "≤ 50",
    "audit.usage_of_a_file_cpu_ms": "≤ 50",
    "audit.usage_of_all_files_cpu_ms": "≤ 50",
    "audit.reliability_of_tools_cpu_ms": "≤ 50",
    "audit.checkpoints_cpu_ms": "≤ 50",
    "transcripts.repeated_reads_listed": "≥ 0.95",
    "transcripts.contexts_with_the_goal": "1.0",
    "stores.neo4j.record_round_trips": "constant",
}
BENCHMARKS = {
    "cold_start": cold_start.measure,
    "redaction": redaction.measure,
    "record": record.measure_ratio,
    "bulk": record.measure_bulk,
    "distill": distill.measure,
    "recall": recall.measure,
    "speed": speed.measure,
    "transcripts": transcripts.measure,
    "http": http_door.measure,
    "audit": audit.measure,
    "indexing": indexing.measure,
    "stores": stores.measure,
}


def main() -> None:
    """Run those named on the command line, or all."""
    wanted = sys.argv[1:] or list(BENCHMARKS)
    results: dict[str, dict[str, float | str]] = {}
    print(f"{'measurement':<44} {'value':>14}  aim")
    for name in wanted:
        results[name] = dict(BENCHMARKS[name]())
        for key, value in results[name].items():
            print(f"{name + '.' + key:<44} {value!s:>14}  {AIMS.get(f'{name}.{key}', '')}", flush=True)
    target = ROOT / "build" / "bench.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
