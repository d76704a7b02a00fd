"""Bad input by the thousand: whatever is handed to tacit ends in a result or in tacit's own words.

A *target* (`targets` and the modules that it lists) takes a seeded `Draw`, makes arguments that are mostly right,
spoils some of them, and calls one public thing. What comes of it is judged by `verdicts`:

- *clean*: a result, without NaN where an answer must have none;
- *clear*: an error that tacit raised itself, or scikit-learn's validation for it, in a message of bearable length;
- *raw*: anything else: an exception from the depths, a NaN, a crash, a hang, an error that repeats the whole input.

`campaign` runs any number of cases in processes of their own, so that a crash costs one case, and `python -m
tests.fuzz` prints the counts: the raw ones must be none. A case is the name of its target and a seed, so
``python -m tests.fuzz --case load:1234`` shows what happened.
"""
