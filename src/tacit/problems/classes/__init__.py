"""Problems with one weight block per class, or per class and state: `Multiclass`, `Candidates`, `Transforms`."""
