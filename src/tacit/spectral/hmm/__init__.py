"""Hidden Markov models from moments."""
