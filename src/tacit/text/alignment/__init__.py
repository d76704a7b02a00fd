"""Word alignment: a matching between the words of two sentences."""
