"""Images: windows as bags of candidates, and drawn boxes joined to them."""
