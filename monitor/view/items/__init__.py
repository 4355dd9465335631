"""The items of a report: how hard they are, their categories, repeats and conflicts."""
