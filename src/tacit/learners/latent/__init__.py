"""The descent of latent SVMs: one run (`descent`), several runs with their checkpoints (`runs`), rounds of runs whose
loss is measured against imputed hidden values (`rounds`)."""
