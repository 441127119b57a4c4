"""Recipes for the task stories."""

from __future__ import annotations

from iclbench import Recipe

#: One layer with d' = 512 and 8 heads of full width (Wang et al., 6.3). The paper gives no
#: optimizer, learning rate, batch size or steps; these are common for models of this size.
PAPER = Recipe(
    steps=60_000,
    batch=64,
    accumulate=2,
    autocast="bfloat16",
    optimizer="adamw",
    optimizer_args={"betas": [0.9, 0.95], "weight_decay": 0.1},
    learning_rate=6e-4,
    schedule="cosine",
    warmup=1000,
    clip=1.0,
    chunk=10,
    model_args={
        "layers": 1,
        "width": 512,
        "heads": 8,
        "head_width": 512,
        "tied": True,
        "embedding": 512,
        "kernel": "softmax",
    },
    task_args={
        "data": "tinystories+children-stories",
        "tokenizer": "gpt2",
        "length": 256,
        "beginning": 96,
        "held_out": 0.01,
        "endings": 200,
    },
)

#: Small models on the task's own data, by default the tales; takes minutes on two cores.
QUICK = Recipe(
    steps=400,
    batch=16,
    optimizer="adamw",
    optimizer_args={"betas": [0.9, 0.95], "weight_decay": 0.1},
    learning_rate=3e-3,
    schedule="cosine",
    warmup=40,
    clip=1.0,
    chunk=10,
    model_args={
        "layers": 1,
        "width": 128,
        "heads": 8,
        "tied": True,
        "embedding": 128,
        "kernel": "softmax",
    },
)
