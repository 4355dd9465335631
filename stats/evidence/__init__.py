"""Evidence about a pair at every moment: e-processes, the exact test at N, and who leads on these N items."""
