"""What several problems share: costs of mistakes, sums of feature rows, and what they refuse."""
