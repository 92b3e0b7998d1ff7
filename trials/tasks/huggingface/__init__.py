"""Models of transformers, with their tokenizers and adapters, for the tasks on texts.

- `text_base`: the base of these tasks, and their `task` part
- `pretrained`, `templates`: loaded models, and the models of trials that are built from them
- `tokenizer`: the model's own, or one that is learnt from the texts
- `lora`: adapters, whole models made of them, and a model in the folder of a checkpoint
"""
