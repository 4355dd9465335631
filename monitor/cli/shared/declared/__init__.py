"""What flags and files declare of benchmarks, epochs, suites and prices."""
