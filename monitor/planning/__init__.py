"""How many items to collect for a gap, and which gap so many items detect, under each procedure."""

from monitor.planning.needs import Likeness, Planned, plan_items
from monitor.planning.show import render_plan

__all__ = ["Likeness", "Planned", "plan_items", "render_plan"]
