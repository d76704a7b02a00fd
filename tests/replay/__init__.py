"""A second generator of bad input, which knows nothing of `tests/fuzz`: programs that work, with one argument changed.

The programs are the doctests of all modules, fits of all pairs of learners and problems, and the commands of
``tacit examples`` (`programs`). In each, one call of a public name of tacit gets one argument changed (`changes`): a
value, a part of it, or the content of a file. The process that runs the program is forked at that call, and the child
goes on to the end of the program with limits on memory and time (`server`).
"""
