"""Models of transformers: built from arguments, equal to the library's, with saved weights."""

from __future__ import annotations

import json
import logging

import pytest
import torch
from random_tensors import randn
from safetensors.torch import save_file

from iclbench import UsageError, run
from iclbench.api.spec import RunSpec
from iclbench.runs.models import initial_module
from iclbench.runs.plan import resolve
from iclbench.runs.state_size import state_sizes
from iclbench_huggingface.architecture import HuggingFace, HuggingFaceConfig
from iclbench_huggingface.saved import saved_layers
from iclbench_least_squares.fixed import FixedConfig, LeastSquares

transformers = pytest.importorskip("transformers")

SIGNATURE = LeastSquares(FixedConfig(examples=8)).signature
SMALL = {"layers": 2, "width": 8, "heads": 2}


def built(**args):
    torch.manual_seed(0)
    return HuggingFace().build(SIGNATURE, HuggingFaceConfig(**{**SMALL, **args})).eval()


def gpt2(**args):
    torch.manual_seed(1)
    config = transformers.GPT2Config(
        n_layer=2, n_embd=8, n_head=2, n_positions=16, vocab_size=5, **args
    )
    return transformers.GPT2Model(config).eval()


def test_gpt2_is_the_library_s():
    ours, theirs = built().double(), gpt2(n_inner=None).double()
    state = {k: v for k, v in theirs.state_dict().items() if not k.startswith("wte.")}
    state["wpe.weight"] = state["wpe.weight"][:9]
    ours.backbone.model.load_state_dict(state)
    x = randn(0, 3, 9, 8)
    expected = theirs(inputs_embeds=x).last_hidden_state
    torch.testing.assert_close(ours.backbone(x), expected, rtol=1e-12, atol=1e-12)


def test_arguments_become_the_config_s():
    config = built(init_std=0.3, settings={"n_inner": 20, "scale_attn_weights": False})
    config = config.backbone.model.config
    assert (config.n_layer, config.n_embd, config.n_head, config.n_inner) == (2, 8, 2, 20)
    assert (config.initializer_range, config.scale_attn_weights) == (0.3, False)
    assert (config.n_positions, config.resid_pdrop, config.attn_pdrop) == (9, 0.0, 0.0)


@pytest.mark.parametrize("name", ["gpt2", "llama", "opt", "xglm", "ctrl"])
def test_mlp_has_4_widths_under_every_name(name):
    backbone = built(config=name).backbone
    weights = [p for n, p in backbone.named_parameters() if p.dim() == 2 and "embed" not in n]
    assert max(max(weight.shape) for weight in weights) == 4 * 8


def test_mlp_beside_a_state_space_has_4_widths():
    from iclbench_huggingface.configs import config_of

    config = config_of(9, HuggingFaceConfig(**SMALL, config="nemotron_h", settings={"expand": 3}))
    assert (config.intermediate_size, config.expand) == (4 * 8, 3)


@pytest.mark.parametrize("settings", [{}, {"expand": 4}])
@pytest.mark.parametrize("name", ["mamba", "falcon_mamba"])
def test_state_space_models_are_as_wide_as_the_library_s(name, settings):
    ours = built(config=name, settings=settings).backbone.model
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "vocab_size": 1}
    own = transformers.AutoConfig.for_model(name, **sizes, **settings)
    theirs = transformers.AutoModel.from_config(own)
    shapes = [
        {n: p.shape for n, p in m.named_parameters() if "embed" not in n} for m in (ours, theirs)
    ]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("name", ["llama", "bert", "mamba", "gptj", "electra"])
def test_other_types_are_causal_backbones_without_a_table_of_ids(name):
    model = built(config=name)
    x = randn(1, 2, 9, 8, dtype=torch.float32)
    later = x.clone()
    later[:, 5:] = 0
    torch.testing.assert_close(model.backbone(later)[:, :5], model.backbone(x)[:, :5])
    loss = model.backbone(x).square().sum()
    parameters = dict(model.backbone.named_parameters())
    grads = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
    assert [n for n, grad in zip(parameters, grads, strict=True) if grad is None] == []


def test_state_is_the_model_s_cache():
    assert state_sizes(built(), 7) == (2 * 8 * 7,) * 2
    shared = built(config="llama", settings={"num_key_value_heads": 1})
    assert state_sizes(shared, 7) == (2 * 4 * 7,) * 2
    assert state_sizes(built(config="mamba"), 7) is None
    # Its cache can't be filled outside of generation.
    assert state_sizes(built(config="jamba"), 7) is None


def test_training_starts_from_saved_weights(tmp_path, capfd):
    theirs = gpt2(n_inner=12)
    theirs.save_pretrained(tmp_path)
    request = {
        "model": "huggingface", "task": "least-squares", "task_args": {"examples": 8},
        "init": "pretrained", "weights_args": {"folder": str(tmp_path)},
    }  # fmt: skip
    capfd.readouterr()
    plan = resolve(RunSpec(**request))
    assert capfd.readouterr() == ("", "")
    assert len(plan.spec.weights_args["sha256"]) == 64
    model = initial_module(plan, 0)
    own = model.backbone.model.state_dict()
    for name, value in theirs.state_dict().items():
        if not name.startswith("wte."):
            assert torch.equal(own[name], value)
    assert model.backbone.model.config.n_inner == 12
    longer = {**request, "task_args": {"examples": 16}}
    with pytest.raises(UsageError, match="has 16 positions, the prompt 17"):
        resolve(RunSpec(**longer))
    other = {**request, "weights_args": {"folder": str(tmp_path), "sha256": "0"}}
    with pytest.raises(UsageError, match="has the digest"):
        resolve(RunSpec(**other))
    with pytest.raises(UsageError, match=r"has no config\.json"):
        resolve(RunSpec(**{**request, "weights_args": {"folder": str(tmp_path / "none")}}))


def test_a_saved_encoder_s_pooler_and_dropout_are_left_out(tmp_path):
    config = transformers.BertConfig(
        num_hidden_layers=1, hidden_size=8, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=16, vocab_size=5, is_decoder=True,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(tmp_path)
    request = {
        "model": "huggingface", "task": "least-squares", "task_args": {"examples": 8},
        "init": "pretrained", "weights_args": {"folder": str(tmp_path)},
    }  # fmt: skip
    model = initial_module(resolve(RunSpec(**request)), 0)
    used = model.backbone.model.config
    assert config.hidden_dropout_prob == 0.1
    assert used.hidden_dropout_prob == used.attention_probs_dropout_prob == 0.0


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ({"config": "gpt3"}, "unknown config 'gpt3'; did you mean 'gptj' or 'gpt2'"),
        ({"settings": {"n_iner": 3}}, "unknown field of gpt2's config 'n_iner'; did you mean"),
        ({"heads": 3}, "3 heads do not divide the width 8"),
        ({"config": "llama", "settings": {"rope_parameters": 3}}, "refuses this config: "),
        ({"settings": {"n_positions": 4}}, "refuses the prompt of 9 positions"),
        ({"config": "mamba", "attention": "sdpa"}, "transformers refuses this config: "),
        (
            {"settings": {"num_hidden_layers": 5}},
            "num_hidden_layers is the model's argument layers",
        ),
        ({"settings": {"n_positions": 10**5}}, "n_positions=100,000 is too large; at most 8,192"),
        ({"settings": {"n_embd": 32}}, "n_embd is the model's argument width"),
        ({"config": "bert", "settings": {"is_decoder": False}}, "this bert is not causal"),
        ({"config": "xlm"}, "this xlm is not causal"),
        ({"config": "mamba2"}, "for validator 'validate_architecture': ValueError: "),
    ],
)
def test_bad_arguments_get_one_line(args, reason):
    request = {"model": "huggingface", "task": "least-squares", "model_args": {**SMALL, **args}}
    with pytest.raises(UsageError, match=reason) as error:
        initial_module(resolve(RunSpec(task_args={"examples": 8}, **request)), 0)
    assert "\n" not in str(error.value)


def test_nothing_of_the_library_s_own_is_logged():
    """It logs a whole config before this error."""
    assert built(config="falcon").backbone.model.config.head_dim == 4
    records = []
    handler = logging.Handler()
    handler.emit = records.append
    transformers.utils.logging.add_handler(handler)
    try:
        with pytest.raises(UsageError, match=r"can't set attribute|no setter"):
            built(config="falcon", settings={"head_dim": 2})
    finally:
        transformers.utils.logging.remove_handler(handler)
    assert records == []


def test_float64_is_refused_where_the_library_computes_in_float32(tmp_path):
    llama = {"config": "llama", **SMALL}
    with pytest.raises(UsageError, match="can't run in float64: it computes"):
        run(model="huggingface", model_args=llama, task="least-squares",
            task_args={"examples": 8}, recipe="smoke", dtype="float64", out=tmp_path)  # fmt: skip


def test_without_transformers_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    reason = HuggingFace().supports(SIGNATURE, HuggingFaceConfig())
    assert reason == "it needs transformers: pip install 'iclbench[huggingface]'"


def test_code_in_a_saved_folder_is_neither_run_nor_asked_about(tmp_path, monkeypatch):
    names = {"AutoConfig": "theirs.Config", "AutoModel": "theirs.Model"}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "theirs", "auto_map": names}))
    (tmp_path / "theirs.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    save_file({"a": torch.zeros(1)}, tmp_path / "model.safetensors")
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("it asks"))
    with pytest.raises(UsageError, match="custom code"):
        saved_layers(tmp_path)
    assert not (tmp_path / "ran").exists()
