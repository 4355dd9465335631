"""`rankwatch admit`: place a newcomer on a board whose other models are complete."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import typer

from monitor.cli.shared.declared.values import check_seed
from monitor.cli.shared.errors import USAGE, file_error, note, stop
from monitor.cli.shared.files import choose_board, find_files, is_empty, make_importer, read_results
from monitor.cli.shared.options import MaxRejectedOption, ScoreOptions, TableFormat, TableFormatOption, option
from monitor.cli.shared.remote.places import bearer_token
from monitor.cli.shared.settings import read_settings
from monitor.files.newcomer import NewcomerError, read_certificate, read_scores, write_certificate
from monitor.files.streams.paths import is_remote, named_path, show
from monitor.files.streams.read import read_files
from monitor.send.admissions import AdmissionPlace
from monitor.send.http import DeliveryError
from monitor.view.admission import AdmissionError, AdmissionGoal, certify, commit, differences, freeze, walk
from monitor.words import admission as words
from monitor.words.counts import counted
from monitor.words.numbers import safe
from schemas.records.names import name_fault
from schemas.records.text import shorten
from schemas.results.admission import AdmissionAsked, Certificate, FrozenBoard
from stats.order import committed_items

if TYPE_CHECKING:
    from monitor.view.board import BoardView

_FILES: Final = "Files, without --server"

RUN, MET, IMPOSSIBLE = 0, 5, 6  # exit codes, as of `rankwatch next`


@dataclass(frozen=True)
class Served:
    """A monitor that has the board, and gets the newcomer's scores."""

    server: Annotated[
        str | None,
        option(
            "--server",
            "address of a `rankwatch watch` or `serve` that has the board, and gets the scores; with --benchmark",
            metavar="http\\[s]://HOST:PORT",
            rich_help_panel="Server",
        ),
    ] = None
    token_file: Annotated[
        Path | None,
        option(
            "--token-file",
            "file with the bearer token for --server  \\[default: $RANKWATCH_TOKEN]",
            rich_help_panel="Server",
        ),
    ] = None


def admit(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="name of the newcomer", show_default=False)],
    logs: ScoreOptions,
    served: Served,
    board: Annotated[
        list[str] | None,
        option(
            "--board",
            "file or folder with the complete results of the other models; may be repeated",
            metavar="PATH",
            rich_help_panel=_FILES,
        ),
    ] = None,
    scores: Annotated[
        str | None,
        option(
            "--scores",
            "file that gets the newcomer's scores, and only these; without one before its order is committed",
            metavar="FILE",
            rich_help_panel=_FILES,
        ),
    ] = None,
    certificate: Annotated[
        Path | None,
        option(
            "--certificate",
            "file of the admission  \\[default: MODEL.admit.json; with --server, none is written]",
            metavar="FILE",
        ),
    ] = None,
    benchmark: Annotated[str | None, option("--benchmark", "name of the benchmark", metavar="NAME")] = None,
    goal: Annotated[
        str | None, option("--goal", "model:MODEL,width=3, top:K or score,width=2 (points); it may change at any time")
    ] = None,
    following: Annotated[
        int | None,
        option("--next", "print only the next items to run, one id a line", min=1, max=1_000_000, metavar="N"),
    ] = None,
    alpha: Annotated[
        float | None,
        option(
            "--alpha",
            "probability, at most, that any statement on the newcomer is wrong  \\[default: 0.05]",
            min=1e-6,
            max=0.5,
        ),
    ] = None,
    seed: Annotated[
        str | None,
        option("--seed", "seed of the order, if others draw it after the newcomer is fixed  \\[default: drawn now]"),
    ] = None,
    max_rejected: MaxRejectedOption = 0.1,
    form: TableFormatOption = TableFormat.table,
) -> None:
    """Place a newcomer among the models of a board that are complete, from a part of the items.

    The first call freezes the board and draws a seed: in the certificate, or with --server in the log. Run the items that --next prints,
    add the scores to the file, or send them to the server, and call it again. `rankwatch verify` recomputes the certificate.

    Exit 0: run the next items. 5: the goal is met, or every item is run. 6: every item is run and the goal is not met, or the scores
    contradict the order. 1: fault. 2: wrong usage.

    Example: rankwatch admit my-model --board results/ --scores my-model.jsonl --goal model:my-model,width=3 --next 50

    Example: rankwatch admit my-model --server http://localhost:8642 --benchmark my-bench --next 50
    """
    if fault := name_fault(model):
        stop(f"MODEL {fault}; use 1 to 200 printable characters", USAGE)
    if seed is not None:
        check_seed(seed)
    try:
        asked = None if goal is None else AdmissionGoal.parse(goal, model)
    except ValueError as error:
        stop(f"--goal: {error}", USAGE)
    if served.server is not None:
        if board or scores:
            stop("--board and --scores: the server has the board and the scores; omit them", USAGE)
        now, order, ahead = _on_server(served, benchmark, model, alpha, seed, certificate)
        _print(now, order, ahead, asked, following, form, certificate)
    if not board or scores is None:
        stop("give --board and --scores, or --server http://host:port of a monitor that has the board", USAGE)
    if (place := named_path(scores)[1]) == "-" or is_remote(place):
        stop("--scores: give a file or a folder; it is read again at every call", USAGE)
    path = certificate or Path(re.sub(r"^\.|[^\w.-]", "_", model) + ".admit.json")
    now, order, ahead = _on_files(model, board, scores, logs, path, benchmark, alpha, seed, max_rejected)
    _print(now, order, ahead, asked, following, form, path)


def _on_files(
    model: str,
    board: Sequence[str],
    scores: str,
    logs: ScoreOptions,
    path: Path,
    benchmark: str | None,
    alpha: float | None,
    seed: str | None,
    max_rejected: float,
) -> tuple[Certificate, list[str], int]:
    """Admit a newcomer to a board of files; return how many of its scores lie ahead of the order too."""
    try:
        view = _board(board, logs, max_rejected, benchmark, model)
        frozen = freeze(view)
        before = _before(path, model, frozen, alpha, seed)
        importer = make_importer(logs)
        segments = () if is_empty(scores) else read_files(find_files(importer, [scores]), opener=importer.open)
        scored = read_scores(segments, frozen, model, view.spec.aliases)
        if before is None:
            if scored:
                stop(
                    f"{show(scores)} has {counted(len(scored), 'score')} of {shorten(model)} already, and an order that is drawn after a "
                    "look is not random; begin with a file without scores, and run the items that --next prints"
                )
            before = certify(frozen, commit(frozen, model, alpha or 0.05, seed), [], version("rankwatch"))
            _check_seed(path, before)
            note(
                f"{show(path)} holds the frozen board ({before.commitment.board[:12]}) and the order; publish it before the first score"
            )
        order = committed_items(before.commitment.seed, frozen.items)
        now = _now(before, order, scored)
        if now is not before:
            write_certificate(path, now)
    except (AdmissionError, NewcomerError) as error:
        stop(str(error))
    except OSError as error:
        stop(file_error(error, path))
    return now, order, len(scored) - now.result.items_run


def _on_server(
    served: Served, benchmark: str | None, model: str, alpha: float | None, seed: str | None, path: Path | None
) -> tuple[Certificate, list[str], int]:
    """Admit a newcomer to a board of a server, or ask for its ranks; return how many of its scores lie ahead of the order too."""
    assert served.server is not None
    if benchmark is None:
        stop("--server: name the benchmark, with --benchmark NAME", USAGE)
    place = AdmissionPlace(served.server, bearer_token(read_settings(), served.token_file))
    try:
        taken = place.admit(AdmissionAsked(benchmark=benchmark, model=model, alpha=alpha, seed=seed))
        if taken.place is not None:
            note(f"the log of {served.server} holds the frozen board ({taken.admission.board[:12]}) and the order")
        if taken.left_out:
            note(f"not complete, so not compared with: {', '.join(map(shorten, taken.left_out))}")
        now, ahead = place.certificate(benchmark, model)
        if path is not None:
            write_certificate(path, now)
    except ValueError as error:
        stop(f"--server: {error}", USAGE)
    except DeliveryError as error:
        stop(str(error))
    except OSError as error:
        stop(file_error(error, path or Path()))
    return now, taken.items, ahead


def _board(
    paths: Sequence[str], logs: ScoreOptions, max_rejected: float, benchmark: str | None, model: str
) -> "BoardView":
    view = choose_board(read_results(paths, max_rejected, logs), benchmark)
    if model in view.epochs:
        raise AdmissionError(
            f"the board has scores of {shorten(model)} already; keep a newcomer's scores in its own file (--scores), outside of --board"
        )
    return view


def _before(path: Path, model: str, board: FrozenBoard, alpha: float | None, seed: str | None) -> Certificate | None:
    """Return the certificate so far; None before the first call."""
    if not path.exists():
        return None
    before = read_certificate(path)
    commitment = before.commitment
    if commitment.model != model:
        raise AdmissionError(f"{show(path)} is of {shorten(commitment.model)}; choose another file with --certificate")
    if before.seal() != before.digest:
        raise AdmissionError(f"{show(path)} has been changed: its digest does not fit its contents; restore the file")
    if board.digest != commitment.board:
        changes = list(differences(before.board, board))[:3]
        raise AdmissionError(
            f"the board is not the one that was frozen in {show(path)}: {'; '.join(changes) or 'another benchmark'}. Restore its "
            "results, or admit the model again from its first item"
        )
    if (alpha, seed) != (None, None) and (alpha or commitment.alpha, seed or commitment.seed) != (
        commitment.alpha,
        commitment.seed,
    ):
        raise AdmissionError(
            f"{show(path)} has another seed or alpha; both are fixed before the first score, so omit --seed and --alpha"
        )
    return before


def _check_seed(path: Path, new: Certificate) -> None:
    """Refuse a given seed that another newcomer of the same board has in this folder."""
    for other in path.parent.glob("*.admit.json") if new.commitment.seed_given else ():
        try:
            commitment = read_certificate(other).commitment
        except (NewcomerError, OSError):
            continue
        if commitment.seed == new.commitment.seed:
            raise AdmissionError(
                f"--seed: {show(other)} has this seed for {shorten(commitment.model)}; each newcomer needs its own, drawn after it is fixed"
            )


def _now(before: Certificate, order: Sequence[str], scored: dict[str, int | None]) -> Certificate:
    """Return the certificate with the scores that have come; what has counted once stays."""
    for item, score in zip(order, before.scores, strict=False):
        if score is None:
            if scored.get(item) is not None:
                note(f"item {shorten(item)} was skipped at an earlier look; its later score does not count")
            scored[item] = None
        elif item not in scored:
            raise AdmissionError(f"item {shorten(item)} had a score at an earlier look and has none now; restore it")
        elif scored[item] != score:
            raise AdmissionError(f"item {shorten(item)} had another score at an earlier look; restore it")
    scores = walk(order, scored)
    if before.scores == scores and before.scores:
        return before
    return certify(before.board, before.commitment, scores, version("rankwatch"))


def _print(
    now: Certificate,
    order: Sequence[str],
    ahead: int,
    goal: AdmissionGoal | None,
    following: int | None,
    form: TableFormat,
    path: Path | None,
) -> NoReturn:
    """Print the answer, or the next items; end the command with what to do."""
    done, left = now.result.items_run, len(order) - now.result.items_run
    state = "open" if goal is None else goal.state(now.board, now.result)
    over = state != "open" or not left
    items = [] if over else order[done : done + (following or 0)]
    if form is TableFormat.json:
        facts = {
            "benchmark": now.board.benchmark,
            "model": now.commitment.model,
            "items": len(order),
            "unit": now.board.unit,
            "goal": None if goal is None else {"goal": goal.text, "state": state, "among": goal.among(now.result)},
            "over": over,
            "ahead": ahead,
            "next": items,
            "certificate": None if path is None else str(path),
            "board_digest": now.commitment.board,
            "result": now.result.model_dump(mode="json"),
        }
        print(json.dumps(facts, ensure_ascii=False, indent=2))
    else:
        answer = [
            *words.lines(now),
            *([] if goal is None else [words.goal(goal.text, state, left, among=goal.among(now.result))]),
            words.promise(now),
        ]
        if following is None:
            print("\n".join(map(safe, answer)))
        else:
            note(answer[0])
            print("".join(f"{item}\n" for item in items), end="")
    if ahead:
        note(words.ahead(now.commitment.model, ahead, order[done]))
    raise SystemExit(IMPOSSIBLE if state == "out of reach" else MET if over else RUN)
