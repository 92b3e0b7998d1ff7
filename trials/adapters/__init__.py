"""Training libraries inside a training function: callbacks that report, save and pause.

- `huggingface`: for the `Trainer` of Transformers, and those of TRL
- `lightning`: for the `Trainer` of Lightning
- `pace`: the optimizer steps at which a trial reports

Each adapter imports its library, so import only the one that you use.
"""
