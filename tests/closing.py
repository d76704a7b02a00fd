"""The three lines at the end of every command, for the tests of all commands."""


def check_closing(text, out):
    """Assert that the last lines say what was found with its quality, where the files are, and what to do next."""
    found, files, next_step = text.splitlines()[-3:]
    assert found.startswith("Found: ")
    assert "; " in found
    assert files.startswith(f"Files: {out}/ (")
    assert "run.json" in files
    assert next_step.startswith("Next:  ")
    assert str(out) in next_step
    return found
