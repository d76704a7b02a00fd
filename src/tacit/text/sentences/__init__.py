"""Document labels, and the sentences that explain them."""
