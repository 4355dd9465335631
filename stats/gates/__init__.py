"""What a gate can know before it runs, when it may stop, and which cases carry its noise."""
