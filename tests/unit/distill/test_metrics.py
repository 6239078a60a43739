"""What a process has done: counted, timed, and named as Prometheus will see it."""

from __future__ import annotations

from recollect.distill.metrics import Metrics


def test_counts_times_and_the_share_of_searches_that_found_something() -> None:
    metrics = Metrics()
    metrics.recorded(2, 0.004)
    metrics.searched(3, 0.010)
    metrics.searched(0, 0.030)
    metrics.summarised(1, 0.5)
    metrics.embedded(10, 0.02)
    metrics.fell_back("the cap is reached")
    metrics.worker_failed("OSError: away")
    assert metrics.timings_ms() == {"record": 2.0, "search": 20.0, "summarize": 500.0, "embed": 2.0, "search_hit_rate": 0.5}
    named = metrics.prometheus()
    assert named["recollect_record_total"] == 2
    assert named["recollect_search_seconds_total"] == 0.04
    assert named["recollect_model_fallback_total"] == named["recollect_worker_failure_total"] == 1
    assert (metrics.fallbacks(), metrics.last_fallback) == (1, "the cap is reached")
    assert metrics.last_worker_error == "OSError: away"
