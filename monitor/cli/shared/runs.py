"""Results read run by run, for commands that look at one model several times."""

from collections.abc import Sequence

from monitor.cli.shared.errors import file_error, stop
from monitor.cli.shared.files import RejectedLines, find_files, make_importer, stop_without_results
from monitor.cli.shared.options import ScoreOptions
from monitor.cli.shared.progress import progress_bar
from monitor.files.dated_runs import DatedRuns, Run, RunFault
from monitor.files.reject_limit import RejectedLine, RejectLimit, TooManyRejected
from monitor.files.streams.paths import origin, show
from monitor.files.streams.read import read_files
from schemas.records.names import natural


def read_runs(
    paths: Sequence[str], logs: ScoreOptions, max_rejected: float, runs: DatedRuns, *, models: bool = False
) -> DatedRuns:
    """Add the results of files to runs; with `models` the path of a file may name its model. An error ends the command."""
    importer = make_importer(logs, runs=not models)
    files = sorted(find_files(importer, paths), key=lambda path: natural(str(path)))
    runs.files = {origin(path): path for path in files}
    limit, rejected = RejectLimit(max_rejected), RejectedLines()
    try:
        with rejected, progress_bar("reading") as update:
            progress = None if update is None else lambda done, total: update(completed=done, total=total)
            for segment in read_files(files, progress, importer.open):
                runs.add(segment)
                for reject in segment.rejects:
                    rejected.print(RejectedLine.of(reject))
                limit.add(segment.line_count, segment.rejects)
                runs.rejected += len(segment.rejects)
        limit.finish()
    except (TooManyRejected, RunFault) as error:
        stop(error.problem if isinstance(error, TooManyRejected) else str(error))
    except OSError as error:
        stop(file_error(error))
    if not runs.sentinels():
        stop_without_results(files)
    return runs


def refuse_copies(runs: DatedRuns, of: Sequence[Run], *, equal_runs: bool) -> None:
    """End the command where a file of the runs of a model may be a copy."""
    if not equal_runs and (copy := runs.copied(of)):
        stop(
            f"{show(copy[0])}: {show(copy[1])} has all that it has, and each counts as a run; remove the copy, name the runs "
            "(a field run), or add --equal-runs if these are runs that answered alike"
        )
