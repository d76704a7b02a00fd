"""Multiple-instance learning: the problem `Bags`, and an oracle for each of its rules."""
