"""How latent SVMs are fitted: one run (`descent`), several runs and their checkpoints (`runs`), and rounds in which the
loss is measured against imputed hidden values (`rounds`)."""
