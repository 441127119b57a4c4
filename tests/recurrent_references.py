"""The recurrent layers written out from their papers' equations, one prompt at a time, in loops.

Independent of `iclbench_recurrent`, whose modules give only the parameters. x is (S, width).
"""

from __future__ import annotations

import math

import torch


def conv(module, x):
    """SiLU of the causal convolution, tap by tap."""
    taps, out = module.taps, torch.zeros_like(x)
    for t in range(len(x)):
        for i in range(len(taps)):
            source = t - (len(taps) - 1 - i)
            if source >= 0:
                out[t] = out[t] + taps[i] * x[source]
    if module.bias is not None:
        out = out + module.bias
    return out * torch.sigmoid(out)


def swish(x):
    return x / (1 + torch.exp(-x))


def linear(module, x):
    out = x @ module.weight.T
    return out if module.bias is None else out + module.bias


def rms(norm, x):
    return x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt() * norm.weight


def heads_of(x, heads):
    """(S, heads · d) → heads tensors (S, d)."""
    return x.chunk(heads, dim=-1)


def softplus(x):
    return torch.log1p(torch.exp(x))


def mamba(m, x):
    """Algorithm 2: h = exp(ΔA)h + ΔBx, y = Ch + Dx, gated by swish(z), one number at a time."""
    u, z = linear(m.input, x).split(m.inner, dim=-1)
    u = conv(m.convolution, u)
    low, b, c = linear(m.selection, u).split([m.rank, m.states, m.states], dim=-1)
    delta, a = softplus(linear(m.step, low)), -torch.exp(m.log_rate)
    rows = []
    h = [[torch.zeros(()).double() for _ in range(m.states)] for _ in range(m.inner)]
    for t in range(len(x)):
        row = []
        for e in range(m.inner):
            for n in range(m.states):
                step = delta[t, e]
                h[e][n] = torch.exp(step * a[e, n]) * h[e][n] + step * b[t, n] * u[t, e]
            row.append(sum(c[t, n] * h[e][n] for n in range(m.states)) + m.skip[e] * u[t, e])
        rows.append(torch.stack(row))
    return linear(m.output, torch.stack(rows) * swish(z))


def mamba2(m, x):
    """The dual form: Y = (L ⊙ CBᵀ)(ΔX) with L[i, j] = a_{j+1} ⋯ a_i, as masked attention."""
    z, u, step = linear(m.input, x).split([m.inner, m.inner + 2 * m.states, m.heads], dim=-1)
    u, b, c = conv(m.convolution, u).split([m.inner, m.states, m.states], dim=-1)
    step = softplus(step + m.step_bias)
    outputs = []
    for h, values in enumerate(heads_of(u, m.heads)):
        a = torch.exp(-torch.exp(m.log_rate[h]) * step[:, h])
        L = torch.zeros(len(x), len(x)).double()
        for i in range(len(x)):
            for j in range(i + 1):
                L[i, j] = a[j + 1 : i + 1].prod()
        mixed = (L * (c @ b.T)) @ (step[:, h, None] * values)
        outputs.append(mixed + m.skip[h] * values)
    return linear(m.output, rms(m.norm, torch.cat(outputs, dim=-1) * swish(z)))


def gated_linear_attention(m, x):
    """S = (αᵀ1) ⊙ S + kᵀv, o = qS, with α = σ(xW₁W₂ + b)^(1/16)."""
    alpha = torch.sigmoid(linear(m.decay[1], linear(m.decay[0], x))) ** (1 / 16)
    parts = (heads_of(linear(p, x), m.heads) for p in (m.query, m.key, m.value))
    outputs = []
    for q, k, v, a in zip(*parts, heads_of(alpha, m.heads), strict=True):
        S, rows = torch.zeros(q.shape[1], v.shape[1]).double(), []
        for t in range(len(x)):
            S = torch.outer(a[t], torch.ones(v.shape[1]).double()) * S + torch.outer(k[t], v[t])
            rows.append(q[t] @ S)
        outputs.append(rms(m.norm, torch.stack(rows)))
    return linear(m.output, torch.cat(outputs, dim=-1) * swish(linear(m.gate, x)))


def retention(m, x):
    """The parallel form (QKᵀ/√d ⊙ D)V with complex rotations e^{inθ} and D = γ^{n−m}."""
    parts = (heads_of(linear(p, x), m.heads) for p in (m.query, m.key, m.value))
    outputs, positions = [], torch.arange(len(x)).double()
    for h, (q, k, v) in enumerate(zip(*parts, strict=True)):
        width = q.shape[1]
        theta = 10000.0 ** (-torch.arange(0, width, 2).double() / width)
        turn = torch.exp(1j * positions[:, None] * theta)
        rotated = [torch.view_as_complex(t.reshape(len(x), -1, 2)) * turn for t in (q, k)]
        scores = (rotated[0] @ rotated[1].conj().T).real / math.sqrt(width)
        distance = positions[:, None] - positions
        D = torch.where(distance >= 0, (1 - 2.0 ** (-5 - h)) ** distance, 0.0)
        outputs.append(rms(m.norm, (scores * D) @ v))
    return linear(m.output, torch.cat(outputs, dim=-1) * swish(linear(m.gate, x)))


def hgrn2(m, x):
    """S = diag(f) S + (1 − f) iᵀ, o = Sᵀq, with f = γ + (1 − γ)σ and q = swish."""
    gamma = torch.zeros(x.shape[1]).double()
    if m.bounds is not None:
        shares = torch.exp(m.bounds) / torch.exp(m.bounds).sum(dim=0)
        gamma = shares.cumsum(dim=0)[m.layer] - shares[0]
    f = gamma + (1 - gamma) * torch.sigmoid(linear(m.key, x))
    q = swish(linear(m.query, x))
    outputs = []
    parts = (heads_of(t, m.heads) for t in (q, f, linear(m.value, x)))
    for query, forget, value in zip(*parts, strict=True):
        S, rows = torch.zeros(query.shape[1], value.shape[1]).double(), []
        for t in range(len(x)):
            S = torch.diag(forget[t]) @ S + torch.outer(1 - forget[t], value[t])
            rows.append(S.T @ query[t])
        outputs.append(torch.stack(rows))
    return linear(m.output, rms(m.norm, torch.cat(outputs, dim=-1)))


def delta_net(m, x):
    """S = a(I − βkkᵀ)S + βkvᵀ, n times a step with the decay a in the first, and o = Sᵀq."""
    q = conv(m.query_taps, linear(m.query, x))
    k = conv(m.key_taps, linear(m.key, x)).reshape(len(x), m.updates, -1)
    v = conv(m.value_taps, linear(m.value, x)).reshape(len(x), m.updates, -1)
    beta = m.largest_beta * torch.sigmoid(linear(m.beta, x)).reshape(len(x), m.updates, -1)
    decay = torch.ones(len(x), m.heads).double()
    if hasattr(m, "decay"):
        decay = torch.exp(-torch.exp(m.log_rate) * softplus(linear(m.decay, x)))
    outputs = []
    for h in range(m.heads):
        qh, kh, vh = (t.chunk(m.heads, dim=-1)[h] for t in (q, k, v))
        S, rows = torch.zeros(qh.shape[-1], vh.shape[-1]).double(), []
        for t in range(len(x)):
            S = decay[t, h] * S
            for i in range(m.updates):
                key = kh[t, i] / kh[t, i].norm()
                householder = torch.eye(len(key)).double() - beta[t, i, h] * torch.outer(key, key)
                S = householder @ S + beta[t, i, h] * torch.outer(key, vh[t, i])
            rows.append(S.T @ (qh[t] / qh[t].norm()))
        outputs.append(rms(m.norm, torch.stack(rows)))
    mixed = torch.cat(outputs, dim=-1)
    if hasattr(m, "gate"):
        mixed = mixed * swish(linear(m.gate, x))
    return linear(m.output, mixed)


REFERENCES = {
    "mamba": mamba,
    "mamba2": mamba2,
    "gated-linear-attention": gated_linear_attention,
    "retention": retention,
    "delta-net": delta_net,
    "gated-delta-net": delta_net,
    "hgrn2": hgrn2,
}
