"""Chunked forms of recurrences equal the recurrences, and special cases equal simpler models."""

from __future__ import annotations

import pytest
import torch
from torch.func import grad, vmap

from iclbench_recurrent import delta, linear, selective
from iclbench_recurrent.attention import log_decays, rotate
from iclbench_recurrent.decay import decay_matrix, scan

B, H, K, V = 2, 3, 5, 4
#: Decays of every position, or None for random ones in (0, 1).
DECAYS = [1e-3, 0.999, 1.0, None]


def random(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def decays(decay, length, width):
    """Logarithms (B, H, length, width)."""
    if decay is None:
        return (3 * random(B, H, length, width, seed=9)).sigmoid().log()
    return torch.full((B, H, length, width), decay, dtype=torch.float64).log()


def attention_inputs(length, decay, width):
    tensors = (random(B, H, length, d, seed=i) for i, d in enumerate((K, K, V)))
    return (*tensors, decays(decay, length, width))


def delta_inputs(length, decay, updates=1, largest=2.0):
    many = length * updates
    query, key = random(B, H, length, K), random(B, H, many, K, seed=1)
    value, beta = random(B, H, many, V, seed=2), random(B, H, many, 1, seed=3)
    unit = key / key.norm(dim=-1, keepdim=True)
    return query, unit, value, largest * beta.sigmoid(), decays(decay, length, 1)


def scan_inputs(length, rate):
    """x, Δ, A, B and C with exp(ΔA) between 1e-3 and 1 for rate 6.9."""
    x, step = random(B, length, 3), random(B, length, 3, seed=1).sigmoid()
    A = -rate * torch.linspace(0.1, 1, 12, dtype=torch.float64).view(3, 4)
    return x, step, A, random(B, length, 4, seed=2), random(B, length, 4, seed=3)


def assert_equal(actual, expected, tolerance=1e-12):
    for a, b in zip(actual, expected, strict=True):
        assert a.shape == b.shape
        assert bool(a.isfinite().all())
        assert float((a - b).norm()) <= tolerance * float(b.norm())


@pytest.mark.parametrize("with_state", [False, True])
@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize(("length", "chunks"), [(1, [1]), (41, [1, 3, 16, 41, None])])
def test_chunked_forms_equal_the_recurrence(length, chunks, decay, with_state):
    state = random(B, H, K, V, seed=4) if with_state else None
    for chunk in chunks:
        for width in (1, K):
            inputs = attention_inputs(length, decay, width)
            expected = linear.recurrent(*inputs, state=state)
            assert_equal(linear.chunked(*inputs, state=state, chunk=chunk), expected)
        for updates in (1, 3):
            inputs = delta_inputs(length, decay, updates)
            expected = delta.recurrent(*inputs, state=state)
            assert_equal(delta.chunked(*inputs, state=state, chunk=chunk), expected)


@pytest.mark.parametrize("decay", [1e-3, None])
def test_long_sequences_with_strong_decays(decay):
    """Over 1,024 positions a product of decays of 1e-3 is 1e-3072, which nothing divides by."""
    for width in (1, K):
        inputs = attention_inputs(1024, decay, width)
        assert_equal(linear.chunked(*inputs), linear.recurrent(*inputs))
    inputs = delta_inputs(1024, decay)
    assert_equal(delta.chunked(*inputs), delta.recurrent(*inputs))
    inputs = scan_inputs(1024, 6.9)
    assert_equal(selective.parallel(*inputs), selective.recurrent(*inputs))


@pytest.mark.parametrize("decay", [1e-3, None])
def test_gradients_of_chunked_forms_equal_the_recurrence_s(decay):
    cases = [
        (linear, linear.chunked, attention_inputs(100, decay, 1)),
        (linear, linear.chunked, attention_inputs(40, decay, K)),
        (delta, delta.chunked, delta_inputs(70, decay)),
        (selective, selective.parallel, scan_inputs(21, 6.9)),
    ]
    for module, chunked, inputs in cases:
        results = []
        for form in (chunked, module.recurrent):
            leaves = [t.clone().requires_grad_() for t in inputs]
            outputs, state = form(*leaves)
            results.append(torch.autograd.grad(outputs.sin().sum() + state.cos().sum(), leaves))
        assert_equal(*results, tolerance=1e-11)


def test_decays_of_0_are_exact_and_have_gradients_in_float32():
    """exp(−200) is 0 in float32: an underflow must not become 0/0 or ∞ − ∞."""
    query, key, value, _ = (t.float() for t in attention_inputs(70, 1.0, 1))
    for width in (1, K):
        log_decay = torch.full((B, H, 70, width), -200.0, requires_grad=True)
        outputs, state = linear.chunked(query, key, value, log_decay)
        torch.testing.assert_close(outputs, (query * key).sum(-1, keepdim=True) * value)
        (gradient,) = torch.autograd.grad(outputs.sum() + state.sum(), log_decay)
        assert bool(gradient.isfinite().all())


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 8, 13])
def test_scan_equals_a_loop(steps):
    decay, update = random(2, steps, 3, 1).sigmoid(), random(2, steps, 3, 4, seed=1)
    state, states = torch.zeros(2, 3, 4, dtype=torch.float64), []
    for n in range(steps):
        state = decay[:, n] * state + update[:, n]
        states.append(state)
    assert_equal([scan(decay, update)], [torch.stack(states, dim=1)])


def test_decay_matrix_is_the_product_of_the_decays_between():
    a = random(6).sigmoid()
    expected = torch.zeros(6, 6, dtype=torch.float64)
    for i in range(6):
        for j in range(i + 1):
            expected[i, j] = a[j + 1 : i + 1].prod()
    assert_equal([decay_matrix(a.log())], [expected])


def test_forms_vmap_with_gradients():
    """As replicas are trained: gradients of each one under one vmap."""
    cases = [
        (linear.chunked, attention_inputs(37, None, K)),
        (linear.chunked, attention_inputs(70, None, 1)),
        (delta.chunked, delta_inputs(37, None, updates=2)),
        (selective.parallel, scan_inputs(9, 6.9)),
    ]
    for form, inputs in cases:
        stacked = [torch.stack([t, 0.5 * t]) for t in inputs]

        def loss(*tensors, form=form):
            return form(*tensors)[0].sin().sum()

        arguments = tuple(range(len(inputs)))
        together = vmap(grad(loss, argnums=arguments))(*stacked)
        alone = [grad(loss, argnums=arguments)(*(t[r] for t in stacked)) for r in range(2)]
        assert_equal(together, [torch.stack(ts) for ts in zip(*alone, strict=True)])


def causal_attention(query, key, value):
    """Linear attention without decay: tril(QKᵀ)V."""
    return (query @ key.mT).tril() @ value


def test_gate_of_1_is_linear_attention():
    query, key, value, gates = attention_inputs(50, 1.0, K)
    expected = causal_attention(query, key, value)
    assert_equal([linear.chunked(query, key, value, gates)[0]], [expected])


def test_retention_is_gated_linear_attention_with_fixed_gates():
    """Its parallel form (QKᵀ ⊙ D)V with D = γ^(n − m), for every head's γ = 1 − 2^(−5−h)."""
    query, key, value, _ = attention_inputs(80, 1.0, 1)
    gates = log_decays(H)[:, None, None].expand(H, 80, 1)
    distance = torch.arange(80.0, dtype=torch.float64)[:, None] - torch.arange(80.0)
    gamma = 1 - 2.0 ** torch.tensor([-5.0, -6.0, -7.0], dtype=torch.float64)
    D = (gamma[:, None, None] ** distance).tril()
    expected = ((query @ key.mT) * D) @ value
    for per_key in (gates, gates.expand(H, 80, K)):
        assert_equal([linear.chunked(query, key, value, per_key)[0]], [expected])
        assert_equal([linear.recurrent(query, key, value, per_key)[0]], [expected])


def test_rotated_scores_depend_on_the_distance_alone():
    query, key = (random(1, 1, 1, 6, seed=i).expand(1, 1, 9, 6) for i in range(2))
    scores = (rotate(query, 4) @ rotate(key, 4).mT)[0, 0]
    assert_equal([scores[1:, 1:]], [scores[:-1, :-1]])
    assert_equal([rotate(query, 0)[..., 5:, :]], [rotate(query[..., 5:, :], 5)])


def test_gated_delta_rule_with_gate_1_is_the_delta_rule():
    query, key, value, beta, gates = delta_inputs(90, 1.0)
    state, outputs = torch.zeros(B, H, K, V, dtype=torch.float64), []
    for t in range(90):
        k, v, b = key[:, :, t, :, None], value[:, :, t, None], beta[:, :, t, :, None]
        state = state - b * k @ (k.mT @ state) + b * k @ v
        outputs.append((query[:, :, t, None] @ state)[:, :, 0])
    assert_equal(delta.chunked(query, key, value, beta, gates), [torch.stack(outputs, 2), state])


def test_delta_rule_retrieves_what_orthonormal_keys_store():
    """With β = 1, n ≤ K orthonormal keys act as linear attention, and each returns its value."""
    key = torch.linalg.qr(random(B, H, 7, 7))[0]
    value, ones = random(B, H, 7, V, seed=1), torch.ones(B, H, 7, 1).double()
    query = random(B, H, 7, 7, seed=2)
    outputs, state = delta.chunked(query, key, value, ones, 0 * ones)
    assert_equal([outputs], [causal_attention(query, key, value)])
    assert_equal([key @ state], [value])


def test_delta_rule_overwrites_exactly():
    """With β = 1 the last value of a unit key is returned, whatever was stored before."""
    query, key, value, beta, gates = delta_inputs(64, 1.0)
    outputs, _ = delta.chunked(key, key, value, torch.ones_like(beta), gates)
    assert_equal([outputs], [value])
    repeated = key[:, :, :1].expand_as(key)
    _, state = delta.chunked(query, repeated, value, torch.ones_like(beta), gates)
    assert_equal([(key[:, :, :1] @ state)], [value[:, :, -1:]])


def test_reflections_track_parity_and_permutations():
    """β = 2 and a key (e₁ − e₂)/√2 exchange two rows of S; two reflections a step are a rotation.

    With β ≤ 1, eigenvalues are not negative, and no product of such steps is a transposition.
    """
    bits = torch.tensor([1, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1])
    swap = torch.tensor([1.0, -1.0, 0.0], dtype=torch.float64) / 2**0.5
    turn = torch.tensor([0.0, 1.0, -1.0], dtype=torch.float64) / 2**0.5
    state = torch.eye(3, dtype=torch.float64)
    zeros, read = torch.zeros(len(bits), 3).double(), torch.eye(3).double()[:1].expand(11, 3)
    beta = 2.0 * bits[:, None].double()
    no_decay = torch.zeros(len(bits), 1).double()
    rows, _ = delta.chunked(read, swap.expand(11, 3), zeros, beta, no_decay, state=state)
    assert_equal([rows[:, 0]], [1 - bits.cumsum(0).double() % 2])
    # A cycle of three elements is a product of two transpositions: one step of two updates.
    keys = torch.stack([swap, turn]).repeat(11, 1)
    twice = beta.repeat_interleave(2, dim=0)
    rows, _ = delta.chunked(read, keys, zeros.repeat(2, 1), twice, no_decay, state=state)
    assert rows.argmax(dim=1).tolist() == [int(count) % 3 for count in bits.cumsum(0)]


def test_hgrn2_keeps_its_state_where_it_forgets_nothing():
    """f = 1 has the key 1 − f = 0, so S stays; f = 0 replaces S by the new value in every row."""
    query, _, value, _ = attention_inputs(6, 1.0, K)
    state, kept = random(B, H, K, V, seed=4), torch.ones(B, H, 6, K).double()
    _, last = linear.chunked(query, 1 - kept, value, kept.log(), state=state)
    assert torch.equal(last, state)
    forgets = torch.full_like(kept, -1e4)
    _, last = linear.chunked(query, kept, value, forgets, state=state)
    assert_equal([last], [value[:, :, -1:].expand(B, H, K, V)])


def test_mamba2_is_mamba_with_one_rate_per_head():
    """The scan with equal A in all entries is linear attention with values Δx and keys B."""
    x, step, _, b, c = scan_inputs(70, 1.0)
    step = step[..., :1]
    A = torch.full((3, 4), -0.7, dtype=torch.float64)
    y, state = selective.parallel(x, step.expand(x.shape), A, b, c)
    dual, dual_state = linear.chunked(c, b, step * x, -0.7 * step)
    assert_equal([y, state], [dual, dual_state.mT])
