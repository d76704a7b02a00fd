"""Documents of which only some sentences say what the label is about."""
