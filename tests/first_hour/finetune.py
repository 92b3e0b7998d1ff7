"""Fine-tunes a small classifier of sentences with Hugging Face's Trainer."""

import numpy as np
import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

set_seed(0)


def make_split(rows, seed):
    """Sentences of eight words: the label says whether most words are of the upper half."""
    random = np.random.default_rng(seed)
    words = random.integers(0, 20, size=(rows, 8))
    labels = (words.mean(axis=1) > 9.5).astype(int)
    return [{"input_ids": w, "labels": y} for w, y in zip(words, labels, strict=True)]


def compute_metrics(prediction):
    chosen = prediction.predictions.argmax(axis=-1)
    return {"accuracy": float((chosen == prediction.label_ids).mean())}


config = BertConfig(
    vocab_size=20,
    hidden_size=8,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=8,
)
model = BertForSequenceClassification(config)
arguments = TrainingArguments(
    output_dir="finetuned",
    num_train_epochs=3,
    learning_rate=1e-3,
    per_device_train_batch_size=8,
    eval_strategy="epoch",
    save_strategy="epoch",
    load_best_model_at_end=True,
    metric_for_best_model="accuracy",
    use_cpu=not torch.cuda.is_available(),
    report_to="none",
)
trainer = Trainer(
    model=model,
    args=arguments,
    train_dataset=make_split(64, seed=1),
    eval_dataset=make_split(32, seed=2),
    compute_metrics=compute_metrics,
)
trainer.train()

results = trainer.predict(make_split(32, seed=3))
print(f"test accuracy: {results.metrics['test_accuracy']:.3f}")
trainer.save_model()
print(f"saved to {arguments.output_dir}")
