"""Labels of the nodes of graphs: any pairwise model, with exact inference or a bound."""
