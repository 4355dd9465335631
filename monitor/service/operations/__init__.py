"""What an operator does over the topic where no server is: boards, dead letters, quarantine."""
