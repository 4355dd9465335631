"""Imports of the program: no cycles, and an engine of few layers."""

import grimp
import pytest

MOST_LAYERS = 7
"""The fold of scores, what follows it, and the loop: its boards, its kernels, their formulas, and the layout of the arrays."""


@pytest.fixture(scope="module")
def imports():
    """Each module with the modules of ours that it imports, also inside functions."""
    graph = grimp.build_graph("monitor", "stats", "schemas")
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def longest_chain(imports, module, above=()):
    """The longest chain of imports that starts at a module; fails on a cycle."""
    assert module not in above, f"import cycle: {' -> '.join((*above[above.index(module) :], module))}"
    chains = (longest_chain(imports, imported, (*above, module)) for imported in imports.get(module, ()))
    return [module, *max(chains, key=len, default=[])]


def test_the_longest_chain_is_counted_in_modules_and_a_cycle_fails():
    assert longest_chain({"a": {"b", "c"}, "b": {"c"}, "c": set()}, "a") == ["a", "b", "c"]
    with pytest.raises(AssertionError, match="import cycle: b -> c -> b"):
        longest_chain({"a": {"b"}, "b": {"c"}, "c": {"b"}}, "a")


def test_the_engine_has_few_layers(imports):
    inside = {
        module: {x for x in imported if x.startswith("monitor.engine")}
        for module, imported in imports.items()
        if module.startswith("monitor.engine")
    }
    chain = max((longest_chain(inside, module) for module in inside), key=len)
    assert len(chain) <= MOST_LAYERS, " -> ".join(chain)


def test_no_module_imports_itself_through_others(imports):
    left = dict(imports)
    # A module without imports among the remaining ones is in no cycle.
    while free := [module for module, imported in left.items() if not imported & left.keys()]:
        for module in free:
            del left[module]
    for module in left:
        longest_chain(left, module)
    assert not left
