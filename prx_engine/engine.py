"""The public face of the engine: everything that an agent, an operator or a script does with it."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self, get_args

from pydantic import ValidationError

from prx_engine import deployment
from prx_engine.clock import Clock, clock_from_environment
from prx_engine.configuration import (
    ConfigurationFile,
    FitnessSettings,
    Parameters,
    SelfEvolution,
    config_path,
    problems_in,
)
from prx_engine.configuration.overriding import parameters_with
from prx_engine.dimensions import LAYERS, Layer
from prx_engine.errors import InvalidInput, PrxError, WrongState
from prx_engine.experiments.catalog import Catalog
from prx_engine.experiments.lifecycle import Lifecycle, Proposal
from prx_engine.experiments.trend import trend
from prx_engine.ids import IdSource, uuid7
from prx_engine.lazy import lazy
from prx_engine.records import ACTIVE, Status, Variant
from prx_engine.store import ChangeWatch, Store, default_database
from prx_engine.text import shown

if TYPE_CHECKING:
    from prx_engine.experiments.convergence import Convergence
    from prx_engine.experiments.promotion import Promotion
    from prx_engine.promotion import Place
    from prx_engine.records import (
        Assignment,
        CheckResult,
        DeploymentFitness,
        Event,
        Experiment,
        ExperimentDetails,
        Forecast,
        HistoryDay,
        ImportReport,
        Plan,
        Preview,
        Snapshot,
        TrendPoint,
        Verification,
    )
    from prx_engine.scoring.scores import Scorer
    from prx_engine.sessions.assignment import Assigner
    from prx_engine.sessions.live import SessionScope
    from prx_engine.sessions.recording import Recorder
    from prx_engine.sessions.windows import ExperimentWindows
    from prx_engine.telemetry.following import TelemetryFollower
    from prx_engine.telemetry.importing import Target

StatusFilter = Status | Literal["active", "all"]

_LONGEST_HISTORY_DAYS: Final = 3660
_MOST_ROWS: Final = 10**9

_AGENT_PATIENCE_SECONDS: Final = 2.0
"""How long an agent that can do without an assignment waits for a busy database."""


class Engine:
    """One deployment's experiments.

    An engine may be shared between threads and survives a fork while no other thread writes. Open it
    with ``Engine.open``; use it as a context manager, or call ``close``.
    """

    def __init__(
        self,
        store: Store,
        configuration: ConfigurationFile,
        clock: Clock,
        ids: IdSource,
        actor: str,
        *,
        read_only: bool = False,
    ) -> None:
        self._store = store
        self._configuration = configuration
        self._clock = clock
        self._actor = actor
        self._read_only = read_only
        self._catalog = Catalog(store, clock)
        self._lifecycle = Lifecycle(store, self._catalog, clock, ids)
        self._ids = ids
        self._scorer: tuple[FitnessSettings, Scorer] | None = None

    @classmethod
    def open(
        cls,
        database: str | Path | None = None,
        config: str | Path | None = None,
        clock: Clock | None = None,
        ids: IdSource | None = None,
        *,
        actor: str | None = None,
        create: bool = True,
        read_only: bool = False,
    ) -> Self:
        """Open a deployment.

        Args:
            database: path, ``sqlite:///…`` or ``postgresql://…``; else ``$PRX_DATABASE_URL``, else
                ``database`` in the configuration, else ``experiments.db`` in the user's data folder.
            config: the TOML file; else ``$PRX_CONFIG``, else ``$OPENPRX_CONFIG_DIR/config.toml``,
                else ``~/.openprx/config.toml``. It need not exist.
            clock: tells the time; else ``$PRX_NOW``, else the system's clock.
            ids: makes experiment ids; UUIDv7 if not given.
            actor: who is named in the log for what this engine is told to do; the user if not given.
            create: whether to make a database that does not exist.
            read_only: whether to leave an interrupted promotion to others, and never promote by itself.

        Raises:
            ConfigurationError: if the configuration is not valid.
            StoreError: if the database cannot be used.
        """
        configuration = ConfigurationFile(Path(config) if config is not None else config_path(os.environ))
        settings = configuration.current()
        url = str(
            database
            or os.environ.get("PRX_DATABASE_URL")
            or _beside(configuration.path, settings.database)
            or default_database()
        )
        engine = cls(
            Store(url, create=create),
            configuration,
            clock or clock_from_environment(os.environ),
            ids or uuid7,
            actor or _user(),
            read_only=read_only,
        )
        if not read_only and engine._catalog.has_interrupted_promotion():
            with suppress(PrxError):  # the next check says what is wrong
                engine._promotion.recover()
        return engine

    def close(self) -> None:
        """Close this thread's connection to the database."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def settings(self) -> SelfEvolution:
        """The present configuration, read again when its file changes.

        Raises:
            ConfigurationError: if it has become invalid.
        """
        return self._configuration.current()

    @property
    def configuration(self) -> ConfigurationFile:
        """The configuration file."""
        return self._configuration

    @property
    def clock(self) -> Clock:
        """The clock that everything here goes by."""
        return self._clock

    @property
    def database(self) -> str:
        """The name under which the database was opened."""
        return self._store.url

    # Sessions

    def assign(
        self, session_id: str, *, on_error: Literal["raise", "default"] = "raise"
    ) -> dict[Layer, Assignment]:
        """Return which variant a session runs in each layer; the same answer for ever after.

        Args:
            session_id: the agent's own name of the session.
            on_error: ``default`` answers "no experiment" instead of raising, whatever is wrong, and waits 2
                seconds at most for a busy database: the agent runs on, uncounted.

        Raises:
            InvalidInput: if the session id is empty or too long.
            StoreError, ConfigurationError: if the database cannot be used.
        """
        from prx_engine.records import Assignment
        from prx_engine.scoring.metrics import SessionUpdate

        if on_error not in ("raise", "default"):
            raise InvalidInput(f"on_error: found {shown(on_error)}; allowed: raise, default")
        if on_error == "raise":
            return self._assigner.assign(SessionUpdate.of({"session_id": session_id}).session_id)
        try:
            with self._store.patience(_AGENT_PATIENCE_SECONDS):
                return self.assign(session_id)
        except Exception:  # whatever it is: an agent that asks like this wants to run on
            return {
                layer: Assignment(
                    layer=layer, variant=None, experiment_id=None, config={}, files={}, reason="error"
                )
                for layer in LAYERS
            }

    def record(self, session_id: str, **fields: Any) -> None:
        """Record what is known of a session; call it as often as there is news.

        Args:
            session_id: the agent's own name of the session.
            fields: raw metrics (``tokens``, ``thumbs_up``, …), ``scores``, and ``started_at``,
                ``cluster``, ``source``, ``layer`` or ``experiment_id`` with ``variant``.

        Raises:
            InvalidInput: naming the field and the value that is wrong.
            NotFound: if the stated experiment does not exist.
            StoreError: if the database cannot be used.
        """
        from prx_engine.scoring.metrics import SessionUpdate

        (result,) = self._recorder.record([SessionUpdate.of({**fields, "session_id": session_id})])
        if result.error is not None:
            raise result.error

    def import_lines(
        self,
        lines: Iterable[bytes],
        name: str = "-",
        *,
        format: str = "native",
        on_rejected: Callable[[int, bytes], object] | None = None,
    ) -> ImportReport:
        """Record lines of telemetry.

        Args:
            lines: raw lines of UTF-8.
            name: of the file, for messages.
            format: of the lines; ``auto`` recognises it by content.
            on_rejected: called with number and raw bytes of each line that is refused.

        Raises:
            InvalidInput: if there is no such format.
            StoreError: if the database fails; lines recorded before stay.
        """
        from prx_engine.telemetry.importing import import_lines
        from prx_engine.telemetry.registry import FileReader

        reader = FileReader(format, self.settings.telemetry)
        return import_lines(name, lines, reader, self._target(), on_rejected)

    def import_file(
        self,
        path: str | Path,
        *,
        format: str = "auto",
        on_rejected: Callable[[int, bytes], object] | None = None,
        on_progress: Callable[[int], object] | None = None,
    ) -> ImportReport:
        """Record what a file of telemetry tells; it may be compressed, a document, or PRX's memory.

        Reading it again changes nothing.

        Args:
            path: the file.
            format: of the file; ``auto`` recognises it by content.
            on_rejected: called with number and raw bytes of each line that is refused.
            on_progress: called now and then with the number of bytes read.

        Raises:
            InvalidInput: if there is no such format.
            OSError: if the file cannot be read.
            StoreError: if the database fails; lines recorded before stay.
        """
        from prx_engine.telemetry.importing import import_file
        from prx_engine.telemetry.registry import FileReader

        reader = FileReader(format, self.settings.telemetry)
        return import_file(Path(path), str(path), reader, self._target(), on_rejected, on_progress)

    def follow(self, *sources: str, format: str = "auto") -> TelemetryFollower:
        """Return a follower of telemetry; each of its polls records what is new.

        Args:
            sources: files, folders or globs; what the configuration names if there are none.
            format: of these files.

        Raises:
            InvalidInput: if there is no such format.
        """
        from prx_engine.telemetry.following import TelemetryFollower
        from prx_engine.telemetry.registry import source

        given = [source(path, format) for path in sources]
        base = Path() if given else self._configuration.path.parent
        return TelemetryFollower(self._target, lambda: self.settings.telemetry, base, given or None)

    def session(
        self, session_id: str | Callable[..., str] | None = None, *, raises: bool = False, **fields: Any
    ) -> SessionScope:
        """Return a session that reports as it runs: a context manager, or a decorator; async as well.

        with engine.session("s-17") as session:
            prompt = session["L2"].config
            session.first_token()
            session.tool_call(ok=True)
            session.tokens(5210)
            session.feedback("thumbs_up")

        Args:
            session_id: the agent's own name of the session; for a decorator also what gives it from the
                arguments of a call. A new one each time if not given.
            raises: whether errors of the experiments reach the agent; else they are only logged.
            fields: to record beside what is told, such as ``cluster``.
        """
        from prx_engine.sessions.live import SessionScope

        return SessionScope(self, session_id, fields, raises=raises)

    # Experiments

    def create_experiment(
        self,
        layer: Layer,
        treatment: Variant | Mapping[str, Any] | str,
        *,
        hypothesis: str,
        control: Variant | Mapping[str, Any] | str = "",
        decision_id: str | None = None,
        duration_hours: int | None = None,
        traffic_split: float | None = None,
        min_sample_size: int | None = None,
    ) -> Experiment:
        """Create a running experiment.

        Nothing converges unless something runs the checks: the dashboard, ``prx evolution watch``,
        or ``prx evolution check`` from cron.

        Args:
            layer: L1, L2 or L3.
            treatment: the proposed configuration: a variant, its fields, or a description.
            hypothesis: what the change should achieve.
            control: today's configuration, likewise.
            decision_id: the agent's own name of the decision to try this.
            duration_hours: instead of the configured default_duration_hours.
            traffic_split: instead of the configured one.
            min_sample_size: instead of the configured one.

        Raises:
            InvalidInput: if a value is not allowed, or another layer's experiment touches the same key
                or file.
            PromotionRefused: if the treatment could not be promoted into the files as they are.
            LayerOccupied: if the layer has an active experiment.
            WrongState: if experiments are switched off.
        """
        settings = self.settings
        if not settings.experiments.enabled:
            raise WrongState(
                "experiments are switched off: self_evolution.experiments.enabled is false in"
                f" {self._configuration.path}"
            )
        longest = settings.experiments.auto_converge.max_duration_hours
        if duration_hours is not None and duration_hours > longest:
            raise InvalidInput(
                f"duration_hours: found {duration_hours}; allowed: at most {longest}, the setting"
                " experiments.auto_converge.max_duration_hours"
            )
        if layer not in LAYERS:
            raise InvalidInput(f"layer: found {shown(layer)}; allowed: {', '.join(LAYERS)}")
        arms = _variant("control", control), _variant("treatment", treatment)
        proposal = Proposal(
            layer=layer,
            hypothesis=_text(hypothesis, "hypothesis"),
            control=arms[0],
            treatment=arms[1],
            base=self._promotion.base(*arms),
            parameters=_pinned(
                settings,
                {
                    "default_duration_hours": duration_hours,
                    "traffic_split": traffic_split,
                    "min_sample_size": min_sample_size,
                },
            ),
            decision_id=None if decision_id is None else _text(decision_id, "decision_id"),
        )
        return self.experiment(self._lifecycle.create(proposal, self._actor))

    def experiments(
        self, status: StatusFilter = "active", layer: Layer | None = None, limit: int | None = None
    ) -> list[Experiment]:
        """Return experiments, the newest first.

        Args:
            status: one status, ``active`` or ``all``.
            layer: only this layer's.
            limit: at most so many.

        Raises:
            InvalidInput: if there is no such status or layer.
        """
        if layer is not None and layer not in LAYERS:
            raise InvalidInput(f"layer: found {shown(layer)}; allowed: {', '.join(LAYERS)}")
        if limit is not None and not 0 <= limit <= _MOST_ROWS:
            raise InvalidInput(f"limit: found {limit}; allowed: 0 to {_MOST_ROWS}")

        def work() -> list[Experiment]:
            return self._catalog.records(self._catalog.rows(_statuses(status), layer, limit))

        return self._store.read(work)

    def counts(self) -> dict[Status, int]:
        """Return how many experiments there are in each status."""
        return self._catalog.counts()

    def experiment(self, experiment_id: str) -> Experiment:
        """Return an experiment; its id may be shortened to any unambiguous prefix or suffix.

        Raises:
            NotFound, Ambiguous: if the id fits no experiment, or several.
        """
        return self._store.read(lambda: self._catalog.records([self._catalog.row(experiment_id)])[0])

    def details(self, experiment_id: str) -> ExperimentDetails:
        """Return an experiment with its looks, dimensions, checks of the split, forecast and events.

        Raises:
            NotFound, Ambiguous: if the id fits no experiment, or several.
        """
        from prx_engine.experiments.details import experiment_details

        return self._store.read(
            lambda: experiment_details(self._store, self._catalog, self._clock, experiment_id)
        )

    def forecast(self, experiment_id: str) -> Forecast | None:
        """Return what the rest of an active experiment may bring, at the traffic of the last seven days.

        None if no check will look at it again.

        Raises:
            NotFound, Ambiguous: if the id fits no experiment, or several.
        """
        return self.details(experiment_id).forecast

    def plan(
        self,
        *,
        lift: float | None = None,
        sessions_a_day: float | None = None,
        mean: float | None = None,
        standard_deviation: float | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Plan:
        """Return what an experiment would do, before it is started.

        Args:
            lift: true lift to plan for; what is detectable if not given.
            sessions_a_day: scored sessions of both arms; those of the last seven days if not given.
            mean: fitness of a session of control; likewise.
            standard_deviation: of the fitness of a session; likewise.
            settings: dotted key → value to use instead of the configuration's: ``min_effect_size``,
                ``sequential.planned_share``, ``fitness.weights.…``.

        Raises:
            InvalidInput: if a value is not allowed, or if there are no sessions that could tell.
        """
        from prx_engine.experiments.plan import Assumptions, plan

        parameters = parameters_with(self.settings, settings or {})
        assumed = Assumptions(sessions_a_day, mean, standard_deviation, lift)
        return plan(self._store, parameters, assumed, self._clock.now())

    def trend(self, experiment_id: str, points: int = 120) -> list[TrendPoint]:
        """Return the cumulative fitness of both arms over time, at up to ``points`` moments."""
        if points < 1:
            raise InvalidInput(f"points: found {points}; allowed: 1 or more")
        return self._store.read(lambda: trend(self._store, self._catalog.row(experiment_id), points))

    def events(self, experiment_id: str | None = None, limit: int | None = None) -> list[Event]:
        """Return the log, of one experiment or of all, the newest first."""

        def work() -> list[Event]:
            row = None if experiment_id is None else self._catalog.row(experiment_id)
            return self._catalog.events(row, limit)

        return self._store.read(work)

    @staticmethod
    def changes_between(old: str, new: str) -> dict[str, Any]:
        """Return what one TOML text sets that another does not, as a variant's ``config``.

        Raises:
            PromotionRefused: if a text is not valid TOML, or the new one lacks a key of the old one.
        """
        from prx_engine.promotion import changes_between

        return changes_between(old, new)

    def check(self, experiment_id: str | None = None) -> list[CheckResult]:
        """Check one experiment, or all active ones and all promoted ones that are still watched.

        Only what is due is analysed. What wins is promoted, and what does harm afterwards is rolled back,
        unless this engine is read-only or on another host.

        Raises:
            NotFound, Ambiguous: if the id fits no experiment, or several.
        """
        if experiment_id is None:
            return self._convergence.check_all()
        return [self._convergence.check(experiment_id)]

    def preview(self, experiment_id: str) -> Preview:
        """Analyse the data of this moment as a look would; nothing is written.

        Raises:
            NotFound, Ambiguous: if the id fits no experiment, or several.
            WrongState: if it has ended.
        """
        return self._convergence.preview(experiment_id)

    def cancel(self, experiment_id: str, reason: str = "") -> Experiment:
        """Cancel an active experiment: all new sessions get the layer's default.

        Raises:
            WrongState: if it has ended.
        """
        self._lifecycle.cancel(experiment_id, reason, self._actor)
        return self.experiment(experiment_id)

    def extend(self, experiment_id: str, hours: int | None = None, reason: str = "") -> Experiment:
        """Move the planned end by ``hours`` (default_duration_hours if not given).

        Raises:
            WrongState: if it has ended.
            InvalidInput: if the new end would lie past the maximum.
        """
        self._lifecycle.extend(experiment_id, hours, reason, self._actor)
        return self.experiment(experiment_id)

    def promote(self, experiment_id: str, reason: str = "", *, force: bool = False) -> Experiment:
        """Make the treatment the default, whatever the statistics say; also a pending promotion's retry.

        Look at ``promotion`` of the result: it is ``applied``, or else still ``pending`` or in
        ``conflict`` with the agent's files, and ``promotion_note`` says why in one line.

        Args:
            experiment_id: active, or converged with its promotion pending or in conflict.
            reason: for the log.
            force: whether to overwrite values that are not what they were at creation.

        Raises:
            WrongState: if there is nothing to promote.
        """
        self._promotion.promote(experiment_id, reason, self._actor, force=force)
        return self.experiment(experiment_id)

    def reject(self, experiment_id: str, reason: str = "") -> Experiment:
        """End an active experiment in favour of control.

        Raises:
            WrongState: if it has ended.
        """
        self._lifecycle.reject(experiment_id, reason, self._actor)
        return self.experiment(experiment_id)

    def rollback(
        self, experiment_id: str | None = None, reason: str = "", *, force: bool = False
    ) -> Experiment:
        """Take an applied promotion back, the last one if none is named.

        Args:
            experiment_id: whose.
            reason: for the log.
            force: whether to take back values that are not what they were promoted as.

        Raises:
            NotFound: if none is named and none is applied.
            WrongState: if it is not applied.
            PromotionConflict: naming what has been edited since; nothing was changed.
            PromotionRefused: if it cannot be taken back here and now; nothing was changed.
        """
        return self.experiment(self._promotion.roll_back(experiment_id, reason, self._actor, force=force))

    def snapshots(self, limit: int | None = None) -> list[Snapshot]:
        """Return what promotions and rollbacks have replaced, one entry a file, the newest first."""
        return self._promotion.snapshots(limit)

    # The deployment

    def fitness(self) -> DeploymentFitness:
        """Return the fitness of all sessions of the last evaluation_window_hours, and its trend."""
        settings = self.settings.fitness
        return self._store.read(
            lambda: deployment.deployment_fitness(self._store, settings, self._clock.now())
        )

    def history(self, days: int = 30) -> list[HistoryDay]:
        """Return the fitness of each of the last UTC days, the oldest first.

        Raises:
            InvalidInput: unless 1 ≤ days ≤ 3660.
        """
        if not 1 <= days <= _LONGEST_HISTORY_DAYS:
            raise InvalidInput(f"days: found {days}; allowed: 1 to {_LONGEST_HISTORY_DAYS}")
        settings = self.settings.fitness
        return self._store.read(lambda: deployment.history(self._store, settings, self._clock.now(), days))

    def verify(self) -> Verification:
        """Sum all stored scores again, score active experiments again from raw metrics, and compare."""
        from prx_engine.verification import verify

        return verify(self._store, self._windows)

    def backup(self, target: str | Path) -> None:
        """Copy the database into a new file, while others go on using it.

        Raises:
            StoreError: if the file exists, cannot be written, or the database is no SQLite file.
        """
        self._store.backup(Path(target))

    def watch(self) -> ChangeWatch:
        """Return a watch that tells whether anybody has written to the database."""
        return ChangeWatch(self._store)

    # What follows is imported where it is needed: a listing must wait neither for the code that takes
    # sessions in, nor for NumPy and SciPy.

    @lazy
    def _windows(self) -> ExperimentWindows:
        from prx_engine.sessions.windows import ExperimentWindows

        return ExperimentWindows(self._store)

    @lazy
    def _recorder(self) -> Recorder:
        from prx_engine.sessions.recording import Recorder

        return Recorder(self._store, self._windows, self._clock, self._deployment_scorer)

    @lazy
    def _assigner(self) -> Assigner:
        from prx_engine.sessions.assignment import Assigner

        return Assigner(
            self._store,
            self._windows,
            self._clock,
            self._deployment_scorer,
            lambda: self.settings.experiments.enabled,
        )

    @lazy
    def _convergence(self) -> Convergence:
        from prx_engine.experiments.convergence import Convergence

        return Convergence(
            self._store,
            self._catalog,
            self._lifecycle,
            self._promotion,
            self._clock,
            lambda: self.settings.experiments,
            promotes=not self._read_only,
        )

    @lazy
    def _promotion(self) -> Promotion:
        from prx_engine.experiments.promotion import Promotion

        return Promotion(self._store, self._catalog, self._lifecycle, self._clock, self._ids, self._place)

    def _place(self) -> Place:
        from prx_engine.promotion import Place

        return Place.of(self._configuration.path, self.settings.promotion)

    def _target(self) -> Target:
        from prx_engine.telemetry.importing import Target

        return Target(self._store, self._recorder, self._deployment_scorer(), self._clock)

    def _deployment_scorer(self) -> Scorer:
        from prx_engine.scoring.scores import Scorer

        settings = self.settings.fitness
        if self._scorer is None or self._scorer[0] is not settings:
            self._scorer = (settings, Scorer(settings))
        return self._scorer[1]


def _beside(file: Path, database: str | None) -> str | None:
    """Return a configured database, a relative path being relative to the configuration's folder."""
    if database is None or "://" in database:
        return database
    return str(file.parent / Path(database).expanduser())


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def _statuses(status: StatusFilter) -> Sequence[Status] | None:
    if status == "all":
        return None
    if status != "active" and status not in get_args(Status):
        allowed = ", ".join(("active", "all", *get_args(Status)))
        raise InvalidInput(f"status: found {shown(status)}; allowed: {allowed}")
    return sorted(ACTIVE) if status == "active" else [status]


def _text(value: str, name: str) -> str:
    text = value.strip()
    if not text:
        raise InvalidInput(f"{name}: empty; say what it is")
    if "\0" in text:
        raise InvalidInput(f"{name}: has a NUL character")
    _refuse_half_pairs(text, name)
    return text


def _refuse_half_pairs(text: str, name: str) -> None:
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise InvalidInput(f"{name}: has half a surrogate pair, which is no character")


def _variant(name: Literal["control", "treatment"], value: Variant | Mapping[str, Any] | str) -> Variant:
    if isinstance(value, Variant):
        fields: Mapping[str, Any] = value.model_dump()
    else:
        fields = {"description": value} if isinstance(value, str) else value
    try:
        variant = Variant.model_validate({**fields, "name": name})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in (name, *first["loc"]))
        raise InvalidInput(f"{where}: found {shown(first['input'])}; {first['msg'].lower()}") from None
    _refuse_half_pairs(variant.description, f"{name}.description")
    for path, text in variant.files.items():
        _refuse_half_pairs(path, f"{name}.files")
        _refuse_half_pairs(text, f"{name}.files.{shown(path)}")
    return variant


def _pinned(settings: SelfEvolution, overrides: Mapping[str, object]) -> Parameters:
    """Return the parameters of a new experiment: the present settings with some values of its own."""
    experiments = settings.experiments.model_dump()
    experiments |= {name: value for name, value in overrides.items() if value is not None}
    data = {"experiments": experiments, "fitness": settings.fitness.model_dump()}
    try:
        return Parameters.model_validate(data)
    except ValidationError as error:
        raise InvalidInput(str(problems_in(error, Parameters, data)[0])) from None
