"""Recipes of the recall tasks."""

from iclbench import Recipe, smoke_recipe

MQAR_SMOKE = smoke_recipe(vocabulary=64, pool=320)

#: Mixers in turn: a convolution of three taps, then attention (Arora et al. 2024, Based, figure 2).
CONVOLUTION_FIRST = {
    "mixers": ["baseconv", "attention"],
    "mixer_args": {"baseconv": {"taps": 3}},
}

#: Initial embeddings are larger than GPT-2's: with tied ones, ids can be told apart from the start.
MQAR_QUICK = Recipe(
    steps=600,
    batch=64,
    optimizer="adamw",
    optimizer_args={"weight_decay": 0.1},
    learning_rate=5e-3,
    schedule="cosine",
    warmup=200,
    # One pass over the pool.
    chunk=600,
    model_args={
        "layers": 2,
        "width": 64,
        "mlp": False,
        "tied": True,
        "init_std": 0.125,
        **CONVOLUTION_FIRST,
    },
    task_args={"pool": 38_400, "random_filler": False},
)

MQAR_PAPER = Recipe(
    steps=12_500,
    batch=512,
    optimizer="adamw",
    optimizer_args={"weight_decay": 0.1},
    learning_rate=2.15e-3,
    schedule="cosine",
    # 196 batches of 512 are one pass over the 100,000 prompts.
    chunk=196,
    model_args={"layers": 2, "width": 64, "mlp": False, "tied": True},
    task_args={"pool": 100_000, "random_filler": False},
)

CONTINUOUS_QUICK = MQAR_QUICK.model_copy(
    update={"task_args": {"pool": 38_400, "vocabulary": 512, "dim": 32, "pairs": 4}}
)

#: MAD's default model and training: two blocks of width 128, no weight decay, and the middle one of
#: its three learning rates. Its cosine falls to 1e-6, here to 0.
MAD_PAPER = Recipe(
    # 200 epochs of 12,800 prompts.
    steps=20_000,
    batch=128,
    optimizer="adamw",
    optimizer_args={"weight_decay": 0.0},
    learning_rate=5e-4,
    schedule="cosine",
    chunk=100,
    # mad-lab counts four layers: attention, MLP, attention, MLP.
    model_args={"layers": 2, "width": 128},
    task_args={"pool": 12_800},
)

#: The source's memorization: 256 prompts, 200 epochs.
MEMORIZATION_PAPER = MAD_PAPER.model_copy(
    update={"steps": 400, "chunk": 2, "task_args": {"pool": 256}}
)

MAD_SMOKE = smoke_recipe(pool=320)

MAD_QUICK = Recipe(
    steps=800,
    batch=32,
    optimizer="adamw",
    learning_rate=3e-3,
    schedule="cosine",
    warmup=100,
    chunk=100,
    model_args={"layers": 2, "width": 64, "init_std": 0.1, **CONVOLUTION_FIRST},
    task_args={"pool": 3_200},
)
