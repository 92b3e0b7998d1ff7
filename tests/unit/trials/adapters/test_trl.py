"""A trainer of TRL in a training function: it is paused like the Trainer that it extends."""

import pytest
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, set_seed
from trl import SFTConfig, SFTTrainer

from trials.adapters.huggingface import TrainerReports

WORDS = ["<pad>", "</s>", "the", "coffee", "cake", "was", "cold", "good", "never"]


def texts(count):
    rows = []
    for number in range(count):
        thing, how = WORDS[3 + number % 2], WORDS[6 + number % 3]
        rows.append({"text": f"the {thing} was {how}"})
    return Dataset.from_list(rows)


def training(folder):
    def train(params, trial):
        set_seed(trial.seed)
        vocabulary = {word: number for number, word in enumerate(WORDS)}
        words = Tokenizer(models.WordLevel(vocabulary, unk_token="<pad>"))
        words.pre_tokenizer = pre_tokenizers.Whitespace()
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=words, pad_token="<pad>", eos_token="</s>"
        )
        config = GPT2Config(
            vocab_size=len(WORDS),
            n_embd=8,
            n_layer=1,
            n_head=2,
            n_positions=16,
            bos_token_id=1,
            eos_token_id=1,
        )
        arguments = SFTConfig(
            output_dir=str(folder / "output"),
            max_steps=trial.budget,
            per_device_train_batch_size=4,
            use_cpu=True,
            bf16=False,
            disable_tqdm=True,
        )
        trainer = SFTTrainer(
            GPT2LMHeadModel(config),
            args=arguments,
            train_dataset=texts(18),
            eval_dataset=texts(6),
            processing_class=tokenizer,
            callbacks=[TrainerReports(trial)],
        )
        trainer.train(resume_from_checkpoint=trial.checkpoint)

    return train


# TRL calls what Transformers has given another name.
@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:`gradient_checkpointing` is deprecated:FutureWarning")
def test_a_training_that_was_paused_has_the_losses_of_one_that_was_not(drive, tmp_path):
    per_trial = {"steps": 8, "report_every": 3}
    never = drive(training(tmp_path), per_trial)
    never.attempt()
    paused = drive(training(tmp_path), per_trial)
    for level in (3, None):
        paused.attempt(until=level)
    assert paused.levels == never.levels == [3, 6, 8]
    names = ("eval_loss", "eval_mean_token_accuracy", "train_loss")
    assert paused.metrics(*names) == never.metrics(*names)
