"""The looped transformer: its loops, what is trained, and the transformer as a special case."""

from __future__ import annotations

import pytest
import torch

from iclbench import SeveralPredictions, UsageError, training_batch
from iclbench.api.config import parse_config
from iclbench.api.random import torch_generator
from iclbench.runs.state_size import state_sizes
from iclbench_least_squares.fixed import FixedConfig, LeastSquares
from iclbench_looped_transformer.architecture import LoopedConfig, LoopedTransformer
from iclbench_transformer.architecture import Transformer, TransformerConfig

TASK = LeastSquares(FixedConfig(dim=2, examples=4))
SHARED = {"width": 8, "init_std": 0.5}


def built(**args):
    torch.manual_seed(0)
    config = LoopedConfig(**SHARED, mixer_args={"heads": 2}, **args)
    return LoopedTransformer().build(TASK.signature, config).double().eval()


def batch():
    return training_batch(TASK, 5, torch_generator("cpu", "looped"), torch.float64)


@pytest.mark.parametrize(
    "args",
    [
        # As many loops as layers, each with weights of its own.
        {"loops": 3, "shared": False, "injection": False},
        # A single loop of all layers.
        {"loops": 1, "layers": 3},
    ],
)
def test_special_cases_are_the_transformer(args):
    looped = built(**args)
    plain = Transformer().build(TASK.signature, TransformerConfig(layers=3, heads=2, **SHARED))
    plain = plain.double().eval()
    plain.load_state_dict(looped.state_dict())
    assert torch.equal(looped(batch().prompt), plain(batch().prompt))


def test_each_loop_adds_the_prompt_and_normalizes():
    model, prompt = built(loops=3, trained_loops=3, layers=2), batch().prompt
    embedded = model.embed(*prompt.sequence()) + model.positions
    states = 0 * embedded
    for _ in range(3):
        states = model.norm(model.blocks[1](model.blocks[0](states + embedded)))
    expected = model.readout(states[:, model.readout_positions])
    torch.testing.assert_close(model(prompt), expected, rtol=1e-12, atol=1e-12)


def test_training_takes_the_last_loops_with_their_gradients_alone():
    model, data = built(loops=5, trained_loops=2).train(), batch()
    predicted = model(data.prompt)
    assert isinstance(predicted, SeveralPredictions)
    # The states before the last two loops are constants of the training.
    with torch.no_grad():
        before = list(model.loop(*data.prompt.sequence()))[2]
    prompt = model.embed(*data.prompt.sequence()) + model.positions
    states, losses = before, []
    for _ in range(2):
        states = model.norm(model.blocks[0](states + prompt))
        prediction = model.readout(states[:, model.readout_positions])
        losses.append(TASK.loss(prediction, data.target).mean())
    parameters = list(model.parameters())
    expected = torch.autograd.grad(sum(losses) / 2, parameters)
    loss = sum(TASK.loss(p, data.target).mean() for p in predicted.predictions) / 2
    for a, b in zip(torch.autograd.grad(loss, parameters), expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("args", "trained"),
    [
        ({}, 6),
        ({"loops": 4}, None),
        ({"loops": 4, "trained_loops": 2}, 2),
        ({"shared": False}, None),
        ({"injection": False}, None),
    ],
)
def test_as_many_loops_are_trained_as_there_are(args, trained):
    config = parse_config(LoopedConfig, args, "model looped-transformer")
    assert config.trained_loops == trained
    # A configuration that was resolved resolves to itself.
    assert LoopedConfig(**config.model_dump()) == config


@pytest.mark.parametrize("args", [{}, {"injection": False}, {"shared": False}])
def test_every_parameter_is_trained(args):
    model, data = built(loops=8, **args).train(), batch()
    losses = [part.square().mean() for part in model(data.prompt).predictions]
    torch.stack(losses).mean().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in model.parameters())


def test_every_loop_has_a_state():
    per_loop = 2 * 8 * 5
    assert state_sizes(built(loops=4, trained_loops=1, layers=2), 5) == (per_loop,) * 8
    untied = {"shared": False, "trained_loops": None}
    assert state_sizes(built(loops=4, layers=2, **untied), 5) == (per_loop,) * 8


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ({"loops": 3, "trained_loops": 4}, "trained_loops=4 is more than loops=3"),
        ({"shared": False, "trained_loops": 6}, "shared=false needs trained_loops=null"),
        ({"injection": False, "trained_loops": 6}, "injection=false needs trained_loops=null"),
        ({"mixer": "atention"}, "unknown mixer 'atention'; did you mean 'attention'"),
        ({"mixer_args": {"heads": 5}}, "mixer attention: 5 heads do not divide the width 64"),
    ],
)
def test_bad_arguments_get_one_line(args, reason):
    with pytest.raises(UsageError, match=reason) as error:
        parse_config(LoopedConfig, args, "model looped-transformer")
    assert "\n" not in str(error.value)
