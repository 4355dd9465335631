"""How many items a question takes: plans, forecasts, goals, races, simulated scores."""
