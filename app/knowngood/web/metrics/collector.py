"""Metrics for Prometheus: the installation as the store has it, and what this server's processes have answered.

Names, units and types are those of docs/runbook.md, docs/alerts.yaml and docs/grafana.json; a test holds them together.
"""

import platform
from collections.abc import Iterable, Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector

from knowngood.domain.verdicts.outcome import Outcome
from knowngood.store.gauges import Gauges
from knowngood.store.records import JobState
from knowngood.store.unreadable import take_met

_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


# A series for each counter's birth would double what is scraped, and nothing here asks for it.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Instruments:
    """The counters of this process. Where `folder` is given they are kept there, and read together with those of all
    processes that keep theirs there; prometheus_client wants PROMETHEUS_MULTIPROC_DIR to name it when it is imported.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._own = own = CollectorRegistry()
        self._requests = Counter(
            "knowngood_http_requests", "Requests answered.", ["method", "route", "status"], registry=own
        )
        self._durations = Histogram(
            "knowngood_http_request_duration_seconds",
            "From a request's head to the end of its answer; event streams are left out.",
            ["method", "route"],
            registry=own,
            buckets=_BUCKETS_S,
        )
        self._decisions = Counter("knowngood_gate_decisions", "Decisions of the gate.", ["decision"], registry=own)
        self._behind = Counter(
            "knowngood_refresh_failures", "Tries to bring what the gate knows up to date that failed.", registry=own
        )
        self._unreadable = Counter(
            "knowngood_unreadable_rows",
            "Rows of the store that could not be read, each counted once by each process that met it.",
            ["table"],
            registry=own,
        )
        self._results = Counter(
            "knowngood_ingest_requests", "Bundles sent here: accepted, refused, failed.", ["result"], registry=own
        )
        self._bytes = Counter("knowngood_ingest_received_bytes", "Bytes of bundles received.", registry=own)

    def answered(self, method: str, route: str, status: int, seconds: float | None) -> None:
        """One request. `route` is the template, never the path that was asked for; no `seconds`: a stream."""
        method = method if method in _METHODS else "other"
        self._requests.labels(method, route, f"{status // 100}xx").inc()
        if seconds is not None:
            self._durations.labels(method, route).observe(seconds)
        for table, n in take_met().items():
            self._unreadable.labels(table).inc(n)

    def decided(self, decision: str) -> None:
        self._decisions.labels(decision).inc()

    def fell_behind(self) -> None:
        self._behind.inc()

    def took_in(self, received: int, status: int) -> None:
        self._bytes.inc(received)
        self._results.labels({2: "accepted", 4: "refused"}.get(status // 100, "failed")).inc()

    def exposed(self) -> CollectorRegistry:
        """The counters of all processes."""
        if self._folder is None:
            return self._own
        shared = CollectorRegistry()
        MultiProcessCollector(shared, path=str(self._folder))  # type: ignore[no-untyped-call]
        return shared


class _Families(list[Metric]):
    """Families made for one scrape, as encoders ask for them."""

    def collect(self) -> Iterable[Metric]:
        return self


def write_metrics(instruments: Instruments, gauges: Gauges | None, version: str, accept: str) -> tuple[bytes, str]:
    """The text and its media type, in whichever of Prometheus' forms `accept` asks for. Without `gauges` the store
    could not be read, and that is what it says of the store.
    """
    encode, media = choose_encoder(accept)
    return encode(_Families([*_families(gauges, version), *instruments.exposed().collect()])), media


def _families(gauges: Gauges | None, version: str) -> Iterator[Metric]:
    build = {"version": version, "python": platform.python_version()}
    yield InfoMetricFamily("knowngood_build", "This release.", value=build)
    yield _gauge("store_up", "1 where the database could be read for this scrape.", int(gauges is not None))
    if gauges is not None:
        yield from _queue(gauges)
        yield from _matrix(gauges)
        yield from _working(gauges)
        yield from _coming_and_going(gauges)


def _queue(gauges: Gauges) -> Iterator[Metric]:
    jobs = {
        (hardware, state): gauges.jobs.get((hardware, state), 0)
        for hardware in sorted({hardware for hardware, _ in gauges.jobs})
        for state in (JobState.QUEUED, JobState.LEASED, JobState.POISONED)
    }
    yield _gauge_by_label("jobs", "Jobs that wait, are held, or were given up.", ("hardware", "state"), jobs.items())
    arms = {(hardware,): float(n) for hardware, n in gauges.arms.items()}
    yield _gauge_by_label(
        "arms_waiting", "Arms without a result in jobs that wait or are held.", ("hardware",), arms.items()
    )
    waited_s = (gauges.at - gauges.oldest_queued_at).total_seconds() if gauges.oldest_queued_at else 0.0
    yield _gauge(
        "jobs_oldest_queued_seconds", "How long the oldest queued job has waited; 0: none.", max(0.0, waited_s)
    )
    yield _gauge("runs_active", "Runs that have not ended.", gauges.runs)
    yield _count("job_losses", "Jobs whose worker, or dispatcher, was lost.", gauges.losses)


def _matrix(gauges: Gauges) -> Iterator[Metric]:
    cells = {(verdict.value, hardware): float(n) for (hardware, verdict), n in gauges.cells.items()}
    yield _gauge_by_label("cells", "Cells with evidence.", ("verdict", "hardware"), cells.items())
    yield _gauge("cells_stale", "Cells whose newest evidence is stale.", gauges.stale)
    ages = {(f"{share:g}",): seconds for share, seconds in gauges.cell_ages.items()}
    yield _gauge_by_label(
        "cell_age_seconds", "Age of cells' newest evidence, by quantile.", ("quantile",), ages.items()
    )
    attempts = CounterMetricFamily(
        "knowngood_attempts", "Attempts that came to count, by outcome and cause.", labels=("outcome", "cause")
    )
    none = {(outcome.value, ""): 0 for outcome in Outcome}  # a series that begins at 1 has no increase to be seen
    for (outcome, cause), n in sorted({**none, **gauges.attempts}.items()):
        attempts.add_metric((outcome, cause), n)
    yield attempts
    yield _gauge("store_generation", "Grows with every write that pages can see.", gauges.generation)


def _working(gauges: Gauges) -> Iterator[Metric]:
    seen = {(digest,): at.timestamp() for digest, (at, _) in gauges.seen.items()}
    yield _gauge_by_label(
        "worker_last_seen_timestamp_seconds", "Last sign of life of a machine.", ("machine",), seen.items()
    )
    gpus = {(digest,): float(len(machine.gpus)) for digest, (_, machine) in gauges.seen.items() if machine}
    yield _gauge_by_label("worker_gpus", "GPUs of a machine.", ("machine",), gpus.items())
    arms = CounterMetricFamily("knowngood_arm_seconds", "Time that arms took, of all workers.", labels=("hardware",))
    for hardware, seconds in sorted(gauges.arm_seconds.items()):
        arms.add_metric((hardware,), seconds)
    yield arms
    yield SummaryMetricFamily(
        "knowngood_provisioning_seconds",
        "Time until an environment was ready.",
        count_value=gauges.provisioned,
        sum_value=gauges.provision_s,
    )
    left_s = (gauges.lease.until - gauges.at).total_seconds() if gauges.lease else 0.0
    yield _gauge("dispatcher_lease_held", "1 where a dispatcher is at work.", int(left_s > 0))
    yield _gauge(
        "dispatcher_lease_remaining_seconds",
        "Until the dispatcher's lease runs out; below 0: it ran out so long ago; 0: given back, or none.",
        left_s,
    )


def _coming_and_going(gauges: Gauges) -> Iterator[Metric]:
    yield _count("imports", "Bundles taken in.", gauges.imports)
    yield _count("ingested_attempts", "Attempts that came in bundles.", gauges.ingested)
    last = gauges.last_import_at.timestamp() if gauges.last_import_at else 0.0
    yield _gauge("ingest_last_timestamp_seconds", "When a bundle was last taken in; 0: never.", last)


def _gauge(name: str, says: str, value: float) -> Metric:
    return GaugeMetricFamily(f"knowngood_{name}", says, value=value)


def _count(name: str, says: str, value: float) -> Metric:
    return CounterMetricFamily(f"knowngood_{name}", says, value=value)


def _gauge_by_label(
    name: str, says: str, labels: tuple[str, ...], values: Iterable[tuple[tuple[str, ...], float]]
) -> Metric:
    family = GaugeMetricFamily(f"knowngood_{name}", says, labels=labels)
    for key, value in sorted(values):
        family.add_metric(key, value)
    return family
