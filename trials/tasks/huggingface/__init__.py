"""Models of transformers, with their tokenizers and adapters, for the tasks on texts.

- `task`: the base of these tasks, and their `task` part
- `pretrained`, `templates`: loaded models, and the models of trials that are built from them
- `tokenizer`: the model's own, or one that is learnt from the texts
- `data`, `sequences`: data and models of tasks that predict tokens
- `lora`: adapters, and whole models made of them
- `model_files`: a model in the folder of a checkpoint
"""
