"""Tags of words: the application and its command."""
