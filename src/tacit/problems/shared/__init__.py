"""What several problems share: costs of mistakes, and sums of feature rows."""
