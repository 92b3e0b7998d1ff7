"""Nothing but the module `wandb`: this folder comes first on the path of a sweep's script."""
