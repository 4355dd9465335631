"""The list of faults comes from the tests, and the list of planted bugs from their patches."""

from docs.generate import faults


def test_every_fault_has_a_known_area_and_its_test():
    found = list(faults.faults())
    tables = faults.tables()
    assert len(found) > 100
    assert all(f"| {fault.what} | {fault.outcome} |" in tables for fault in found)


def test_every_planted_bug_is_listed_with_what_it_breaks():
    table = faults.planted_bugs()
    assert table.count("\n") - 1 == len(list((faults.TESTS / "simulation" / "mutants").glob("*.patch")))
    assert "not run" not in table
