"""`python -m monitor`: the same as the command `rankwatch`."""

from monitor.cli import main

main()
