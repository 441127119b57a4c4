"""The field's training loops: one model, eager mode, Adam, data drawn on the CPU."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from iclbench import SequenceConfig, SequenceModel, training_batch

from .configurations import Configuration


class GPT2(nn.Module):
    """`transformers.GPT2Model` between two linear maps, as in Garg et al. (2022); one head."""

    def __init__(self, length: int, inputs: int, readout: tuple[int, ...], layers: int) -> None:
        super().__init__()
        from transformers import GPT2Config, GPT2Model

        config = GPT2Config(
            n_positions=length,
            n_embd=64,
            n_layer=layers,
            n_head=1,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            use_cache=False,
            attn_implementation="eager",
        )
        self.read_in, self.read_out = nn.Linear(inputs, 64), nn.Linear(64, 1)
        self.backbone = GPT2Model(config)
        # The inputs are embeddings, so the token table is unused.
        self.backbone.wte = None
        self.readout = list(readout)

    def forward(self, prompt: Any) -> Tensor:
        """The prediction (B, P, 1)."""
        states = self.backbone(inputs_embeds=self.read_in(prompt.tokens)).last_hidden_state
        prediction: Tensor = self.read_out(states)[:, self.readout]
        return prediction


class Conv1dMixer(nn.Module):
    """BaseConv's mixer in its usual form: linear maps and a depthwise Conv1d."""

    def __init__(self, width: int, length: int) -> None:
        super().__init__()
        self.gate, self.input, self.output = (nn.Linear(width, width) for _ in range(3))
        self.convolution = nn.Conv1d(width, width, length, groups=width, padding=length - 1)

    def forward(self, u: Tensor) -> Tensor:
        """(B, S, width) → (B, S, width)."""
        convolved = self.convolution(self.input(u).mT)[..., : u.shape[1]].mT
        out: Tensor = self.output(self.gate(u) * convolved)
        return out


def reference_module(configuration: Configuration, task: Any) -> nn.Module | None:
    """The module of the field's loop, or None."""
    signature, layers = task.signature, configuration.model_args.get("layers", 1)
    if configuration.reference == "gpt2":
        return GPT2(signature.length, signature.input_width, signature.readout, layers)
    if configuration.reference == "conv1d":
        config = SequenceConfig(layers=layers)
        mixers = [Conv1dMixer(config.width, signature.length) for _ in range(layers)]
        return SequenceModel(signature, config, list(mixers))
    return None


class PlainLoop:
    """The plain loop: draw, forward, backward, torch.optim.Adam."""

    replicas = 1

    def __init__(self, name: str, module: nn.Module, task: Any, batch: int, device: str) -> None:
        self.name, self.task, self.batch, self.device = name, task, batch, torch.device(device)
        self.module = module.to(self.device)
        self.optimizer = torch.optim.Adam(self.module.parameters(), lr=1e-3)
        self.generator = torch.Generator().manual_seed(0)

    def draw(self) -> Any:
        """A batch, drawn on the CPU."""
        batch = training_batch(self.task, self.batch, self.generator, torch.float32)
        if self.device.type == "cpu":
            return batch
        prompt = type(batch.prompt)(*(t.to(self.device) for t in batch.prompt))
        return batch._replace(prompt=prompt, target=batch.target.to(self.device))

    def forward(self, batch: Any) -> Tensor:
        """The loss."""
        loss: Tensor = self.task.loss(self.module(batch.prompt), batch.target).mean()
        return loss

    def backward(self, loss: Tensor) -> None:
        """Compute the gradients."""
        self.optimizer.zero_grad()
        loss.backward()

    def update(self, _: None) -> None:
        """Take an Adam step."""
        self.optimizer.step()

    def advance(self, steps: int) -> None:
        """Take steps; the loss is read at every step, as progress bars do."""
        for _ in range(steps):
            loss = self.forward(self.draw())
            self.backward(loss)
            self.update(None)
            loss.item()

    @property
    def stages(self) -> dict[str, Any]:
        """The stages of a step; each takes the previous one's result."""
        return {
            "data": lambda _: self.draw(),
            "forward": self.forward,
            "backward": self.backward,
            "optimizer": self.update,
        }
