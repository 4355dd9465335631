from hypothesis import settings

# A shared machine may pause any single example: time is measured by benchmarks, not here.
settings.register_profile("laws", deadline=None)
settings.load_profile("laws")
