"""Results in files as boards, without a log and a store."""
