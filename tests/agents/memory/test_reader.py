"""The reader against its equations: keys and values of all tokens, all chunks read."""

import math

import pytest
import torch
from torch import Tensor

from memenvs.agents.memory.chunking import Chunks, chunks_by_key, chunks_by_place, chunks_by_time
from memenvs.agents.memory.reader import MemoryLayer, MemoryReader
from memenvs.agents.memory.tokens import Tokens
from tests.agents.memory.comparison import assert_same

B, N, D, HEADS, K = 3, 14, 8, 2, (11, 14, 4)


def reader(layers: int = 2, seed: int = 0) -> MemoryReader:
    torch.manual_seed(seed)
    made = MemoryReader(D, layers, HEADS, mlp_dim=6).double()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return made


def summed(seed: int = 1, mask: bool = True) -> Tokens:
    generator = torch.Generator().manual_seed(seed)
    tables = tuple(torch.randn(k, D, generator=generator, dtype=torch.float64, requires_grad=True) for k in K)
    rows = tuple(torch.randint(k, (B, N), generator=generator) for k in K)
    in_memory = torch.rand(B, N, generator=generator) < 0.7
    return Tokens(tables=tables, rows=rows, mask=in_memory if mask else None)


def dense(tokens: Tokens) -> Tokens:
    """The same tokens as vectors."""
    parts = [table[rows] for table, rows in zip(tokens.tables, tokens.rows, strict=True)]
    return Tokens(values=torch.stack(parts).sum(0), mask=tokens.mask)


def attend_plainly(q: Tensor, k: Tensor, v: Tensor, heads: int) -> Tensor:
    """Of one query (D,) to L keys (L, D), head by head."""
    parts = []
    for h in range(heads):
        part = slice(h * D // heads, (h + 1) * D // heads)
        weights = (k[:, part] @ q[part] / math.sqrt(D // heads)).softmax(0)
        parts.append(weights @ v[:, part])
    return torch.cat(parts)


def layer_plainly(layer: MemoryLayer, query: Tensor, memory: Tensor, chunks: list[list[int]], top_k: int) -> Tensor:
    """Equations of one layer for one sequence.

    Args:
        layer: The layer.
        query: float, (Q, D).
        memory: float, (N, D).
        chunks: Tokens of each chunk.
        top_k: Chunks to read.
    """
    x = layer.local_norm(query)
    q, k, v = layer.local_query(x), layer.local_key(x), layer.local_value(x)
    query = query + layer.local_mix(torch.stack([attend_plainly(own, k, v, HEADS) for own in q]))
    x = layer.read_norm(query)
    reads = []
    for own in x:
        relevance = []
        for chunk in chunks:
            summary = memory[chunk].sum(0) / (len(chunk) + 1e-5)
            relevance.append(layer.relevance_query(own) @ layer.relevance_key(summary) / math.sqrt(D))
        chosen = sorted(range(len(chunks)), key=lambda c: -relevance[c].item())[:top_k]
        weights = torch.stack([relevance[c] for c in chosen]).softmax(0)
        total = torch.zeros(D, dtype=query.dtype)
        for weight, c in zip(weights, chosen, strict=True):
            frames = memory[chunks[c]]
            inner = attend_plainly(layer.query(own), layer.key(frames), layer.value(frames), HEADS)
            total = total + weight * layer.mix(inner)
        reads.append(total)
    query = query + torch.stack(reads)
    return query + layer.mlp[2](torch.relu(layer.mlp[0](layer.mlp_norm(query))))


def read_plainly(
    made: MemoryReader, query: Tensor, tokens: Tokens, chunks: list[list[list[int]]], top_k: int
) -> Tensor:
    memory = dense(tokens).values if tokens.values is None else tokens.values
    assert memory is not None
    rows = []
    for b in range(B):
        row = query[b]
        for layer in made.layers:
            row = layer_plainly(layer, row, memory[b], chunks[b], top_k)
        rows.append(row)
    return torch.stack(rows)


def tokens_in_memory(tokens: Tokens) -> list[list[int]]:
    mask = torch.ones(B, N, dtype=torch.bool) if tokens.mask is None else tokens.mask
    return [torch.nonzero(row)[:, 0].tolist() for row in mask]


LAYOUTS = {
    "time": lambda kept, places: [[row[i : i + 3] for i in range(0, len(row), 3)] for row in kept],
    "place": lambda kept, places: [
        [
            run[i : i + 3]
            for p in range(K[2])
            for run in [[j for j in row if places[b, j] == p]]
            for i in range(0, len(run), 3)
        ]
        for b, row in enumerate(kept)
    ],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_hierarchical_read(layout: str) -> None:
    made, tokens = reader(), summed()
    assert tokens.mask is not None
    places = tokens.rows[2]
    chunks = chunks_by_time(tokens.mask, 3) if layout == "time" else chunks_by_place(places, tokens.mask, 3)
    by_hand = LAYOUTS[layout](tokens_in_memory(tokens), places)
    for queries in (1, 3):
        for top_k in (2, 100):
            query = torch.randn(B, queries, D, dtype=torch.float64, requires_grad=True)
            expected = read_plainly(made, query, tokens, by_hand, top_k)
            leaves = [query, *tokens.tables, *made.parameters()]
            assert_same(made(query, tokens, chunks, top_k), expected, leaves)
            assert_same(made(query, dense(tokens), chunks, top_k), expected, leaves)


def test_masks_and_rows_of_a_query_are_its_own() -> None:
    """Independent queries with their own masks and rows read what as many sequences would read."""
    made, tokens = reader(), summed()
    generator = torch.Generator().manual_seed(2)
    everything = torch.ones(B, N, dtype=torch.bool)
    for queries, has_tables in ((2, False), (D, True)):  # many read tokens that are added up once
        query = torch.randn(B, queries, D, generator=generator, dtype=torch.float64, requires_grad=True)
        mask = torch.rand(B, queries, N, generator=generator) < 0.5
        values = torch.randn(B, N, D, generator=generator, dtype=torch.float64, requires_grad=True)
        tables, rows = tokens.tables * has_tables, tokens.rows[:2] * has_tables
        own_rows = torch.randint(K[2], (B, queries, N), generator=generator)
        read = Tokens(values, tables, (*rows, own_rows) if has_tables else (), mask)
        for size, top_k in ((1, N), (4, 2)):
            chunks = None if size == 1 else chunks_by_time(everything, size)
            got = made(query, read, chunks, top_k, independent=True)
            for q in range(queries):
                own = Tokens(values, tables, (*rows, own_rows[:, q]) if has_tables else ()).as_vectors()
                kept = [
                    [
                        run
                        for run in ([i for i in range(c, min(c + size, N)) if row[i]] for c in range(0, N, size))
                        if run
                    ]
                    for row in mask[:, q].tolist()
                ]
                expected = read_plainly(made, query[:, q : q + 1], own, kept, top_k)
                assert_same(got[:, q : q + 1], expected, [query, values, *tokens.tables, *made.parameters()])
    in_memory = Tokens(values, mask=everything)
    torch.testing.assert_close(made(query, Tokens(values), chunks, 2), made(query, in_memory, chunks, 2))


def test_fewer_chunks_than_top_k_and_no_token_at_all() -> None:
    made, tokens = reader(), summed()
    query = torch.randn(B, 1, D, dtype=torch.float64, requires_grad=True)
    in_memory = torch.zeros(B, N, dtype=torch.bool)
    in_memory[0, 3] = in_memory[1, 2] = in_memory[1, 9] = True  # one token, two, none
    few = Tokens(tables=tokens.tables, rows=tokens.rows, mask=in_memory)
    chunks = chunks_by_time(in_memory, 1)
    assert chunks.index.shape == (B, 2, 1)
    assert made(query, few, chunks, 9).isfinite().all()
    torch.testing.assert_close(made(query, few, chunks, 9)[:2], made(query, few)[:2])
    for read in (made(query, few), made(query, few, chunks, 9)):
        empty = made(query[2:], Tokens(values=torch.zeros(1, 1, D, dtype=torch.float64)))
        torch.testing.assert_close(read[2:], empty)  # the bias alone
        (gradient,) = torch.autograd.grad(read.sum(), query)
        assert gradient.isfinite().all()


def test_attention_can_be_read_out() -> None:
    made, tokens = reader(layers=3), summed()
    assert tokens.mask is not None
    query = torch.randn(B, 2, D, dtype=torch.float64)
    for chunks in (None, chunks_by_time(tokens.mask, 3)):
        weights = made.attention(query, tokens, chunks, top_k=2)
        assert weights.shape == (3, B, 2, N)
        torch.testing.assert_close(weights.sum(-1), torch.ones(3, B, 2, dtype=torch.float64))
        assert not weights[:, ~tokens.mask[:, None].expand(B, 2, N)].any()
        assert chunks is None or ((weights > 0).sum(-1) <= 6).all()
    layer = made.layers[0]  # its output is that of its weights: values and output projection of the weighted mean
    flat = query.flatten(0, 1)
    x = layer.read_norm(flat + layer.attend_to_queries(layer.local_norm(flat), (B, 2), independent=False))
    values = dense(tokens).values
    assert values is not None
    expected = layer.mix(layer.value(made.attention(query, tokens)[0] @ values))
    torch.testing.assert_close(layer.read_all(x, tokens)[0].unflatten(0, (B, 2)), expected)


def test_layers_that_start_by_comparing_see_some_directions_alone() -> None:
    """The logit is the given one times the cosine if mean squares are 1, for single tokens and in each head."""
    made = reader()
    directions = torch.linalg.qr(torch.randn(D, D, dtype=torch.float64)).Q.T[:3]
    made.start_by_comparing(slice(1, None), directions, 5.0)
    first, layer = made.layers
    token, other = (
        math.sqrt(D) * directions.T @ torch.nn.functional.normalize(vector, dim=0)
        for vector in torch.randn(2, 3, dtype=torch.float64)
    )
    unseen = torch.randn(D, dtype=torch.float64)
    unseen = unseen - directions.T @ (directions @ unseen)
    for query in (token, other):
        expected = 5.0 * (query @ token) / D
        torch.testing.assert_close(layer.folded_query(query + unseen) @ (token - unseen), expected)
        in_heads = (layer.query(query + unseen) * layer.key(token - unseen)).view(HEADS, -1).sum(1) * layer.scale
        torch.testing.assert_close(in_heads, expected.expand(HEADS))
    made.start_by_comparing(slice(1), torch.eye(D, dtype=torch.float64)[:6], 5.0)  # each head compares four numbers
    assert (first.key.weight.view(HEADS, -1, D)[:, :, 4:] == 0).all()


def test_chunks_by_hand() -> None:
    in_memory = torch.tensor([[1, 1, 0, 1, 1, 1, 1], [0, 0, 0, 1, 1, 0, 0]], dtype=torch.bool)
    places = torch.tensor([[0, 1, 0, 1, 1, 0, 1], [3, 3, 3, 3, 2, 2, 2]])

    def lists(chunks: Chunks) -> list[list[list[int]]]:
        rows = zip(chunks.index, chunks.mask, strict=True)
        return [[index[mask].tolist() for index, mask in zip(*row, strict=True)] for row in rows]

    assert lists(chunks_by_time(in_memory, 2)) == [[[0, 1], [3, 4], [5, 6]], [[3, 4], [], []]]
    assert lists(chunks_by_place(places, in_memory, 2)) == [[[0, 5], [1, 3], [4, 6]], [[4], [3], []]]
    assert lists(chunks_by_place(places, in_memory, 10)) == [[[0, 5], [1, 3, 4, 6]], [[4], [3]]]
    full = torch.ones(1, 64, dtype=torch.bool)
    assert chunks_by_time(full, 32).index.shape == (1, 2, 32)  # no empty chunk after a full one
    assert lists(chunks_by_key(torch.tensor([[9, 2, 9, 2]]), full[:, :4], 2)) == [[[1, 3], [0, 2]]]
    assert lists(chunks_by_time(torch.zeros(1, 4, dtype=torch.bool), 2)) == [[[]]]


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(ValueError, match=r"heads must divide dim \(10\), got 4"):
        MemoryReader(10, heads=4)
    with pytest.raises(ValueError, match="layers must be an integer of at least 1, got 0"):
        MemoryReader(layers=0)
    with pytest.raises(ValueError, match=r"tokens must have values or tables, .* got no values, 0 tables and 0 rows"):
        Tokens()
    with pytest.raises(
        ValueError, match=r"tokens must have .* rows for each table, got no values, 1 tables and 0 rows"
    ):
        Tokens(tables=(torch.zeros(2, 2),))
    with pytest.raises(ValueError, match="chunk must be an integer of at least 1, got 0"):
        chunks_by_time(torch.ones(1, 2, dtype=torch.bool), 0)
