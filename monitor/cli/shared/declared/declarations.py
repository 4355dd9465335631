"""What is declared of benchmarks that begin: by flags, by each rankwatch.toml, and by the files themselves."""

import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from monitor.cli.shared.declared.flags import Fields, Flags, parse_flags
from monitor.cli.shared.declared.values import first_names, flag_text, show_aliases, show_value, similar_first
from monitor.cli.shared.errors import USAGE, Notes, note, stop
from monitor.cli.shared.options import DeclareOptions
from monitor.files.declaration_file import FILE, DeclaredError, read_declared
from monitor.files.streams.paths import is_remote, named_path, origin
from monitor.view.board import BoardView
from monitor.view.pairs.intervals import unlisted, unscored
from monitor.view.pairs.table import PairTable
from monitor.words.assumptions import clauses
from schemas.records.catalogue import published
from schemas.records.declaration import Declaration, Spec, alias_problem
from schemas.records.decode import describe_error
from schemas.records.redeclared import changed_fields, parts_chosen, version_fault
from schemas.records.text import shorten
from schemas.results.assumptions import late


def make_declarations(options: DeclareOptions, paths: Sequence[str], *, live: str | None = None) -> "Declarations":
    """Return what the flags and each rankwatch.toml next to `paths` declare; a fault ends the command."""
    return Declarations(_tables(paths), parse_flags(options), live)


def with_fields(fields: Fields, paths: Sequence[str], benchmark: str | None) -> "Declarations":
    """Return what each rankwatch.toml next to `paths` declares, and fields of one benchmark, or of each; a fault ends the command."""
    return Declarations(_tables(paths), Flags({field: {benchmark: value} for field, value in fields.items()}, {}))


def _tables(paths: Sequence[str]) -> dict[str, Fields]:
    try:
        return read_declared([place for path in paths if not is_remote(place := named_path(path)[1])])
    except DeclaredError as error:
        stop(str(error), USAGE)


class Declarations:
    """Declares benchmarks that begin. A flag overrides a rankwatch.toml, which overrides what the files declare."""

    def __init__(self, tables: Mapping[str, Fields], flags: Flags, live: str | None = None) -> None:
        self._tables, self._flags, self._live = tables, flags, live
        self.notes = Notes()
        self._undeclared_noted = False
        self._present: Collection[str] = ()
        self._begun: dict[str, Fields] = {}
        self._stored: dict[str, Fields] = {}
        self.stored: Callable[[str], Spec | None] = lambda _: None
        """Returns what is declared of a benchmark where its events go, None without a declaration: it stays, but for flags."""
        self.chooses_scores: Callable[[], bool] = lambda: False
        """Returns whether flags or mappings choose which of several scores of an item is read."""
        for name in sorted({*tables, *flags.named()}) or ["benchmark"]:
            self._check(name)

    def _check(self, name: str) -> None:
        """End the command if the flags and the table of a benchmark contradict each other."""
        fields = self.given(name)
        if not fields:
            return
        try:
            Declaration.model_validate({"declare": name, **fields})
        except ValidationError as error:
            own = "completion" in str(fields.get("order")) and "items" not in fields
            if own and name not in self._tables:
                stop("--order completion: needs the item count; add --items N", USAGE)
            described = describe_error(error.errors(include_url=False)[0])
            stop(f"--order committed: {described}" if fields.get("order") == "committed" else described, USAGE)

    @property
    def given_any(self) -> bool:
        """Whether a flag or a rankwatch.toml declares anything."""
        return bool(self._tables or self._flags.values or self._flags.aliases or self.chooses_scores())

    @property
    def aliases(self) -> Mapping[str, str]:
        """Other names of models, and the model of each."""
        return self._flags.aliases

    def given(self, benchmark: str) -> Fields:
        """Return the fields that the flags and a rankwatch.toml declare of a benchmark."""
        return _override(self._tables.get(benchmark, {}), self._flags.of(benchmark))

    def note_present(self, files: Iterable[Path]) -> None:
        """Note the files that have results already: flags, and a rankwatch.toml, may have been chosen because of these."""
        self._present = {origin(file) for file in files if file.is_file() and file.stat().st_size}

    def __call__(self, benchmark: str, own: Declaration | None, graded: bool, file: str | None = None) -> Fields | None:
        """Return what to declare of a benchmark that begins, or in place of what its file declares."""
        given = self.given(benchmark)
        if benchmark not in self._begun and (spec := self.stored(benchmark)) is not None:
            self._stored[benchmark] = self._begun[benchmark] = _override(_fields(spec), given)
            self.notes(
                f"{shorten(benchmark)}: declared already; what its files declare is not used", "declared already"
            )
        if benchmark in self._stored:
            exported = {} if own is None else own.model_dump(exclude_defaults=True, include={"provenance"})
            return {"declare": benchmark, **self._stored[benchmark], **exported}
        fields = {} if own is None else own.model_dump(mode="json", exclude_unset=True, exclude={"declare"})
        if benchmark in self._begun:
            # A later run declares its item count again: what was declared at the first event stays.
            begun = self._begun[benchmark]
            fields = begun | {
                field: value
                for field, value in fields.items()
                if field not in given or begun.get(field) != given[field]
            }
        else:
            known = self._live is None or file in self._present
            fields = self._begin(benchmark, fields, given, graded=graded, known=known)
        return {"declare": benchmark, **fields} if fields else None

    def _begin(self, benchmark: str, own: Fields, given: Fields, *, graded: bool, known: bool) -> Fields:
        """Return what is declared of a benchmark; `known`: its scores were there before the flags, and before a rankwatch.toml is read."""
        fields = _override(own, given)
        try:
            spec = Spec.model_validate(fields)
            chosen = parts_chosen(benchmark, Spec.model_validate(own), spec) if known and given else []
        except ValidationError as error:
            fault = describe_error(error.errors(include_url=False)[0])
            note(f"{shorten(benchmark)}: its file declares it, and the flags are not used: {fault}")
            fields = own
        else:
            self._note_overrides(benchmark, own)
            # That scores are graded is found, not chosen.
            late = [part for part in chosen if part != "scores" or not graded]
            if late:
                fields = {**fields, "declared_late": [*dict.fromkeys([*fields.get("declared_late", ()), *late])]}
        if known and self.chooses_scores():
            fields = {**fields, "provenance": {**fields.get("provenance", {}), "score_choice": True}}
        if graded and "scores" not in fields:
            text = "some scores are neither 0 nor 1; they count as graded, as with --scores graded"
            try:
                Spec.model_validate(fields | {"scores": "graded"})
                fields = {**fields, "scores": "graded"}
            except ValidationError as error:
                fault = describe_error(error.errors(include_url=False)[0])
                text = f"some scores are neither 0 nor 1, so no pair is decided: {fault}"
            self.notes(f"{shorten(benchmark)}: {text}", "with graded scores")
        if self._live is not None and not fields.keys() & {"items", "item_ids", "clusters", "order"}:
            fields = self._count_published(benchmark, fields)
        if Spec.model_validate(fields).order.policy == "completion" and not own:
            fields = {**fields, "known": True}
        self._begun[benchmark] = fields
        return fields

    def _count_published(self, benchmark: str, fields: Fields) -> Fields:
        """Add the published item count of a benchmark for which nothing else gives one; print what was added, or how to declare it."""
        name, known = shorten(benchmark), published(benchmark)
        if known is not None and "weights" in fields:
            if known.clusters is None:
                note(
                    f"{name}: no pair is decided before the items of each cluster are declared; add --clusters CLUSTER:N,..."
                )
                return fields
            sizes = f"{known.items:,} items in {len(known.clusters):,} clusters"
            note(f"{name}: {sizes}, the published sizes ({known.source}); --clusters overrides them")
            return {**fields, "clusters": dict(known.clusters)}
        if known is not None:
            text = f"{known.items:,} items, the published size ({known.source}); --items {name}=N overrides it"
            self.notes(f"{name}: {text}", "of the published size")
            return {**fields, "items": known.items}
        command = f"{self._live} --items {shlex.quote(f'{name}=')}N"
        if self._undeclared_noted:
            text = f"the item count is neither declared nor published: {command}"
            self.notes(f"{name}: {text}", "whose item count is neither declared nor published")
            return fields
        self._undeclared_noted = True
        note(
            f"{name}: the item count is neither declared nor published, so no pair is decided while results arrive; to declare it: "
            f"{command}; until then, `rankwatch report` takes the items it reads for the whole "
            "benchmark"
        )
        return fields

    def note_published(self, boards: Mapping[str, BoardView]) -> None:
        """Print where complete files hold another number of items than was published."""
        for name, benchmark in sorted(boards.items()):
            known = published(name)
            if known is None or benchmark.spec.items is not None or benchmark.items == known.items:
                continue
            self.notes(
                f"{shorten(name)}: {benchmark.items:,} items were read, and {known.items:,} are published ({known.source}); the items read "
                f"count as the whole benchmark; --items {shorten(name)}={known.items} counts the others as missing",
                "with another number of items than is published",
            )

    def note_family(self, benchmarks: Mapping[str, BoardView]) -> None:
        """Print where a declared family `spending` is not used: files that are the whole benchmark have all their pairs."""
        for name, benchmark in sorted(benchmarks.items()):
            declared = "family" in self._begun.get(name, {}) and benchmark.spec.family.policy == "spending"
            if declared and PairTable.of(benchmark, assert_complete=True).kind.shares_equally:
                self.notes(
                    f"{shorten(name)}: the family spending is not used: without an item count the files are the whole benchmark, and their "
                    f"pairs share alpha equally; --items {shorten(name)}=N uses it",
                    "whose family spending is not used",
                )

    def note_units(self, benchmarks: Mapping[str, BoardView]) -> None:
        """Print which units were found in the files, and which declared items have no scores."""
        for name, benchmark in sorted(benchmarks.items()):
            units = benchmark.spec.units
            if units is None:
                continue
            if benchmark.found_units:
                text = (
                    f"{show_value('units', units)}, by the field unit; each unit counts once, by the mean of its items"
                )
                self.notes(f"{shorten(name)}: {text}", "with units")
            absent = sorted(units.keys() - {key.item for key in benchmark.row_keys})
            if absent:
                verb = "has" if len(absent) == 1 else "have"
                text = f"{first_names(absent)} of the declared units {verb} no scores; correct the ids, or omit them"
                self.notes(f"{shorten(name)}: {text}", "with items of units that have no scores")

    def note_models(self, benchmarks: Mapping[str, BoardView]) -> None:
        """Print which models are outside the declared family, and which of the declared ones have no scores."""
        for name, benchmark in sorted(benchmarks.items()):
            outside, absent = unlisted(benchmark), unscored(benchmark)
            if outside:
                named = [
                    f"{shorten(model)}{f' (declared: {shorten(near)}?)' if near else ''}"
                    for model, near in outside.items()
                ]
                verb = "is" if len(named) == 1 else "are"
                text = f"{first_names(named)} {verb} not in the declared family: no family-wise verdict"
                self.notes(f"{shorten(name)}: {text}", "with models that are not in the declared family")
            if absent:
                verb, whose = ("has", "its") if len(absent) == 1 else ("have", "their")
                text = f"{first_names(absent)} of the declared family {verb} no scores; {whose} pairs keep a share of alpha"
                self.notes(f"{shorten(name)}: {text}", "with declared models that have no scores")
            anchor = benchmark.spec.anchor
            if anchor is not None and (anchor, 0) not in benchmark.epoch_contestant_of:
                text = f"the anchor {shorten(anchor)} has no battles, so the mean of the models is 1,000"
                self.notes(f"{shorten(name)}: {text}", "whose anchor has no battles")

    def resume(
        self,
        specs: Mapping[str, Spec],
        in_files: Callable[[], set[str]],
        refusal: Callable[[Fields], str | None] = lambda _: None,
    ) -> list[Fields]:
        """Take up benchmarks that have begun: a flag or a table that changes one declares its next version, and this is printed."""
        aliases = self._flags.aliases
        for_all = {field: self._flags.values[field][None] for field in self._flags.for_all()}
        named = {*self._tables, *self._flags.named()}
        changed = {
            name: new for name in named & specs.keys() if (new := _next_version(name, specs[name], self.given(name)))
        }
        begun = {name: spec for name, spec in specs.items() if name not in named}
        differing = {name: new for name, spec in begun.items() if (new := _next_version(name, spec, for_all))}
        held = in_files() if differing else set()
        for name in sorted(differing.keys() & held):
            if held == {name}:
                changed[name] = differing[name]
                continue
            # A number in a command has no separators.
            flags = " ".join(flag_text(field, for_all[field], f"{name}=") for field in for_all)
            note(
                f"{shorten(name)} stays as it was declared; flags without a name are for benchmarks that begin ({flags} names it)"
            )
        for name, spec in specs.items():
            self._begun[name] = _fields(changed.get(name, spec))
            if not aliases.items() <= spec.aliases.items():
                self._begun[name] = _override(self._begun[name], {"aliases": aliases})
                if problem := alias_problem(self._begun[name]["aliases"]):
                    stop(f"--alias: {shorten(name)}: {problem} (declared so far: {show_aliases(spec.aliases)})", USAGE)
        goals = self._new_goals(specs, in_files)
        for name, goal in goals.items():
            self._begun[name] = _override(self._begun[name], {"goal": goal})
            note(f"{shorten(name)}: goal = {goal} (was {specs[name].goal or 'none'}); no verdict depends on it")
        declarations = [
            {"declare": name, **self._begun[name]}
            for name, spec in specs.items()
            if name in changed or name in goals or self._begun[name].get("aliases", {}) != spec.aliases
        ]
        _print_versions(specs, changed, [refusal(fields) for fields in declarations])
        return declarations

    def _new_goals(self, specs: Mapping[str, Spec], in_files: Callable[[], set[str]]) -> dict[str, str]:
        """Return the goals that flags and tables give benchmarks that have begun, where they are new."""
        named = {name: self.given(name).get("goal") for name in {*self._tables, *self._flags.named()} & specs.keys()}
        for_all = self._flags.values.get("goal", {}).get(None)
        if for_all is not None and specs.keys() - named.keys():
            named |= dict.fromkeys(in_files() & (specs.keys() - named.keys()), for_all)
        return {name: goal for name, goal in sorted(named.items()) if goal is not None and goal != specs[name].goal}

    def _note_overrides(self, benchmark: str, own: Fields) -> None:
        """Print which declared values a flag or a rankwatch.toml replaces."""
        table, flags = self._tables.get(benchmark, {}), self._flags.of(benchmark)
        flags.pop("aliases", None)
        for field, value in flags.items():
            where, old = (FILE, table) if field in table else ("the file", own)
            if field in old and not _same(field, value, old[field]):
                note(
                    f"{shorten(benchmark)}: {flag_text(field, value)} replaces {field} = {show_value(field, old[field])} of {where}"
                )
        for field, value in table.items():
            if field in own and field not in flags and not _same(field, value, own[field]):
                new, old_value = show_value(field, value), show_value(field, own[field])
                note(f"{shorten(benchmark)}: {field} = {new} of {FILE} replaces {old_value} of the file")

    def note_unused(self, benchmarks: Iterable[str]) -> None:
        """Print the benchmarks that a flag names and the files do not hold."""
        for text in self._unused(set(benchmarks)):
            note(text)

    def stop_unused(self, known: Iterable[str], in_files: Callable[[], set[str]] = set) -> None:
        """End the command if a flag names a benchmark that is neither known nor in the files: what it declares would be ignored."""
        begun = set(known)
        if self._flags.named() <= begun:
            return
        unused = self._unused(begun | in_files())
        for text in unused[:-1]:
            note(text)
        if unused:
            stop(unused[-1], USAGE)

    def _unused(self, begun: set[str]) -> list[str]:
        """Return a sentence for each benchmark that a flag names and the files do not hold, with the names that they hold."""
        texts = []
        for name in sorted(self._flags.named() - begun):
            flags = " and ".join(f"--{field}" for field, named in self._flags.values.items() if name in named)
            texts.append(
                f"{flags} {shorten(name)}=...: the files hold no benchmark of that name; they hold {similar_first(name, begun)}"
            )
        return texts


def _override(old: Fields, new: Fields) -> Fields:
    """Return fields with others in their place; an item count replaces a list of items, and a list a count."""
    new = {field: value for field, value in new.items() if not _same(field, value, old.get(field))}
    fields = old | new
    if "aliases" in fields:
        fields["aliases"] = {**old.get("aliases", {}), **new.get("aliases", {})}
    sizes = ("items", "item_ids", "clusters")
    if not new.keys().isdisjoint(sizes):
        fields = {field: value for field, value in fields.items() if field in new or field not in sizes}
    if "look" not in new and not {"order", "scores", "repeats", "units", "weights"}.isdisjoint(new):
        fields.pop("look", None)  # it was of the bets that these replace
    return fields


def _same(field: str, value: object, old: object) -> bool:
    """Return whether a declared value is the same; an order policy without its seed is the same as with it."""
    if old is None:
        return False
    if field == "order":
        return _policy(value) == _policy(old)
    return value == old


def _policy(order: object) -> object:
    return order.get("policy") if isinstance(order, dict) else order


def _fields(spec: Spec) -> Fields:
    return spec.model_dump(mode="json", exclude_defaults=True)


def _next_version(name: str, old: Spec, given: Fields) -> Spec | None:
    """Return a declaration as its next version with other fields; None if verdicts rest on the same."""
    if not given:
        return None
    fields = _override(_fields(old), {field: value for field, value in given.items() if field != "aliases"})
    try:
        new = Spec.model_validate(fields | {"version": old.version + 1})
    except ValidationError as error:
        if fault := version_fault(name, old, old):
            stop(fault.reason, USAGE)
        stop(f"{shorten(name)}: {describe_error(error.errors(include_url=False)[0])}", USAGE)
    return new if changed_fields(old, new) else None


def _print_versions(specs: Mapping[str, Spec], changed: Mapping[str, Spec], refusals: Iterable[str | None]) -> None:
    """Print what each next version declares; end the command if one is refused."""
    faults = (version_fault(name, specs[name], new) for name, new in sorted(changed.items()))
    for reason in (*(fault and fault.reason for fault in faults), *refusals):
        if reason:
            stop(reason, USAGE)
    for name, new in sorted(changed.items()):
        note(_describe_version(name, specs[name], new))


def _describe_version(name: str, old: Spec, new: Spec) -> str:
    """Return what a next version declares, and what verdicts then assume."""
    fields = changed_fields(old, new)
    values = ", ".join(f"{field} = {_value(new, field)} (was {_value(old, field)})" for field in fields)
    assumed = "the item count is the published size, so verdicts assume nothing more"
    if parts := late(parts_chosen(name, old, new)):
        clause = clauses(parts)
        assumed = f"verdicts now assume that {clause}"
    ended = "" if old.order.policy == "none" else "decisions so far are superseded, and "
    return f"{shorten(name)}: declared again, as version {new.version}: {values}; {ended}{assumed}"


def _value(spec: Spec, field: str) -> str:
    value = spec.model_dump(mode="json", exclude_none=True).get(field)
    return "none" if value is None else show_value(field, value)
