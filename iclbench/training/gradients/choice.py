"""The choice of a gradient program, made once, before the first step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, fields
from functools import cache, cached_property, partial
from typing import Literal, get_args

from ...api.capabilities import TrainingContext
from ...api.errors import first_line, is_out_of_memory, unknown
from ...api.prompts import Batch
from ..replicas import Replicas
from ..threads import Map, map_at_once, one_thread
from .binding import NoFormError
from .capacity import (
    ALONE_ELEMENTS,
    cpu_group_size,
    cpu_slices,
    elements_per_operator,
    fitting_group_size,
    measured_speedup,
)
from .compiled import Compiled
from .equivalence import Reference
from .leading import Leading
from .plain import Plain
from .program import GradientProgram, Loss, MakeProgram
from .threaded import Threaded
from .vmapped import Vmapped

#: How steps are taken. `auto` is the fastest program that agrees with `plain`, as a CUDA graph
#: where one is possible; `graph` is the same and says why where there is no graph.
EngineName = Literal["auto", "plain", "vmapped", "threaded", "compiled", "graph"]

#: A program of several replicas.
Kind = type[Leading] | type[Vmapped]

#: Why a model that draws random numbers is trained by `plain`.
RANDOM = "it draws random numbers in its forward pass"


@dataclass(frozen=True, kw_only=True)
class How:
    """How a program takes a step.

    `group_size` replicas are one program; where that is one, `slices` are a batch's.
    """

    name: str
    group_size: int = 1
    slices: int = 1
    by_threads: bool = False

    def torch_threads(self) -> AbstractContextManager[None]:
        """Leave torch one thread during a step whose parts have threads already."""
        return one_thread() if self.by_threads else nullcontext()


@dataclass(frozen=True, kw_only=True)
class Candidate(How):
    """A program that may be chosen. It keeps the batch and the reference of the choice alive."""

    make: MakeProgram
    in_float64: bool = True  # whether it is compared in float64 too
    in_groups: Callable[[int], Candidate] | None = None  # the same with groups of another size

    @property
    def how(self) -> How:
        """How it takes a step, without what the choice alone needs."""
        return How(**{field.name: getattr(self, field.name) for field in fields(How)})


@dataclass(frozen=True)
class Choice:
    """The program that was chosen, how, and the reasons why others were not; often none."""

    program: GradientProgram
    how: How
    speedup: float | None
    reasons: list[str]


@dataclass(frozen=True)
class Chooser:
    """What a choice depends on.

    `batch` is one that a program will get, each field (R, B, …). `cheap_update` says that an
    optimizer's update costs little beside a gradient, so that a step may leave torch one thread.
    """

    replicas: Replicas
    loss: Loss
    batch: Batch
    context: TrainingContext
    cheap_update: bool = True

    def choose(self, engine: EngineName) -> Choice:
        """Return the first candidate that agrees with `plain`; raises UsageError."""
        if engine not in get_args(EngineName):
            raise unknown("engine", engine, get_args(EngineName))
        reasons: list[str] = []
        refused = False
        for first in self._candidates(engine, reasons):
            candidate = first
            if candidate.name == "plain":
                break
            try:
                candidate, mismatch = self._compared(first)
            except NoFormError:  # no failure: few modules take several replicas
                continue
            if mismatch is None:
                break
            reasons.append(f"not {candidate.name}: {mismatch}")
            if candidate.group_size > 1:
                refused = True
        if refused and candidate.group_size == 1:
            reasons.append("replicas are trained one after another")
        speedup = None
        if candidate.group_size > 1:
            grouped = candidate.make(self.replicas.copy())
            with suppress(Exception):  # one replica's form may fail, which decides nothing
                speedup = measured_speedup(grouped, self._one_replica(), self.batch)
        return Choice(candidate.make(self.replicas), candidate.how, speedup, reasons)

    def _compared(self, candidate: Candidate) -> tuple[Candidate, str | None]:
        """The candidate, in smaller groups where memory is short, and why it can't be used."""
        try:
            with candidate.torch_threads():
                return candidate, self._reference.find_mismatch(
                    candidate.make, in_float64=candidate.in_float64
                )
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            half = candidate.group_size // 2
            if candidate.in_groups is None or half < 2:
                return candidate, first_line(error)
        return self._compared(candidate.in_groups(half))

    def _candidates(self, engine: EngineName, reasons: list[str]) -> Iterator[Candidate]:
        """The programs to try, the fastest first; `reasons` gets why others are not among them."""
        if engine != "plain":
            if self.replicas.random_states is not None:
                if engine not in {"auto", "graph"}:
                    reasons.append(f"not {engine}: {RANDOM}")
                elif self.replicas.count > 1:
                    reasons.append(f"replicas are trained one after another: {RANDOM}")
            else:
                yield from self._compiled() if engine == "compiled" else ()
                yield from self._grouped(engine, reasons) if engine != "threaded" else ()
                yield from self._threaded()
        yield Candidate(name="plain", make=partial(Plain, loss=self.loss))

    def _compiled(self) -> Iterator[Candidate]:
        size = self._group_size(Vmapped, forced=False)

        @cache
        def compiled() -> Compiled:
            return Compiled(self.replicas, self.loss, self.context, size)

        # Compiling in float64 would take as long again.
        make: MakeProgram = lambda replicas: compiled().on(replicas)  # noqa: E731
        yield Candidate(name="compiled", make=make, group_size=size, in_float64=False)

    def _grouped(self, engine: EngineName, reasons: list[str]) -> Iterator[Candidate]:
        """Several replicas as one program, unless operators are so large that it does not pay."""
        size = 1
        forced = engine == "vmapped"
        kinds: tuple[Kind, ...] = (Vmapped,) if forced else (Leading, Vmapped)
        for kind in kinds:
            size = self._group_size(kind, forced=forced)
            if size > 1 or forced:
                yield self._in_groups(kind, size)
        if size == 1 < self.replicas.count and not self._on_cpu:
            reasons.append("trained one after another: only one replica fits in memory")

    def _in_groups(self, kind: Kind, size: int) -> Candidate:
        make, in_groups = self._maker(kind, size), partial(self._in_groups, kind)
        return Candidate(name=kind.name, make=make, group_size=size, in_groups=in_groups)

    def _threaded(self) -> Iterator[Candidate]:
        """One replica at a time; the whole batch where predictions depend on other prompts."""
        slices = 1
        if self._on_cpu:
            slices = cpu_slices(self.replicas, self.batch.target.shape[1], self._elements)
        for count in sorted({slices, 1}, reverse=True):
            map_parts: Map = map
            if self._on_cpu and self.cheap_update:
                map_parts = map_at_once(self.replicas.count * count)
            make = partial(
                Threaded, loss=self.loss, context=self.context, slices=count, map_parts=map_parts
            )
            by_threads = map_parts is not map
            yield Candidate(name="threaded", make=make, slices=count, by_threads=by_threads)

    def _group_size(self, kind: Kind, *, forced: bool) -> int:
        """How many replicas one program takes; more than one where `forced`, if there are more."""
        count = self.replicas.count
        if count == 1:
            return 1
        if self._on_cpu:
            elements = min(self._elements, ALONE_ELEMENTS) if forced else self._elements
            return cpu_group_size(count, elements)
        try:
            return fitting_group_size(
                count, lambda size: self._maker(kind, size)(self.replicas.copy()), self.batch
            )
        except Exception as error:
            # The programs of one replica may need less memory. Any other failure is reported by
            # the comparison.
            return 1 if is_out_of_memory(error) else count

    def _maker(self, kind: Kind, size: int) -> MakeProgram:
        return partial(kind, loss=self.loss, context=self.context, group_size=size)

    def _one_replica(self) -> GradientProgram:
        """The fastest program of the first replica alone."""
        return Threaded(self.replicas.first(), self.loss, self.context)

    @property
    def _on_cpu(self) -> bool:
        return self.replicas.flat.device.type == "cpu"

    @cached_property
    def _elements(self) -> float:
        """What an operator of one replica's step writes on average."""
        try:
            return elements_per_operator(self._one_replica(), self.batch)
        except Exception:  # the form fails; its comparison reports that
            return elements_per_operator(Plain(self.replicas.first(), self.loss), self.batch)

    @cached_property
    def _reference(self) -> Reference:
        return Reference(self.replicas, self.batch, self.loss, autocast=self.context.autocast)
