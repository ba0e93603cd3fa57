"""Models that answer with pictures: sizes, and the equations step by step."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from memenvs.agents.memory.reader import MemoryLayer
from memenvs.agents.papers.sat.picture_model import PictureModel
from memenvs.query_task import QueryBatch
from memenvs.retention import STRATEGY_NAMES
from tests.agents.memory.test_reader import layer_plainly
from tests.agents.papers.sat.random_pictures import MOVES, RandomPictures
from tests.reference_retention import ReferenceMemory

SMALL = {"dim": 8, "layers": 3, "mlp_dim": 8, "chunk": 2, "top_k": 2}
B = 3


def kept_steps(regions: np.ndarray, strategy: str, capacity: int | None) -> list[int]:
    memory = ReferenceMemory(strategy, len(regions) if capacity is None else capacity, 4)
    return sorted([memory.write(region) for region in regions.tolist()][-1])


def plain_answer(model: PictureModel, batch: QueryBatch, strategy: str, b: int) -> Tensor:
    """Answer of one episode by the equations, step by step; float, (A, 16, 16, 3)."""
    config = model.config
    picture = torch.from_numpy(batch.pictures(np.array([b])))[0]

    def code_of(row: int) -> Tensor:
        top, left = (8 * score for score in divmod(row - 100 * b, 10))
        return model.encoder(picture[None, top : top + 16, left : left + 16])[0]

    steps = kept_steps(batch.regions[b], strategy, model.capacity)
    tokens, regions = [], []
    for step in steps:
        token = code_of(int(batch.rows[b, step]))
        if config.memory == "t-fifo+a":
            assert model.moves is not None and batch.moves is not None
            token = token + model.times[2 * step + 1]
            if step:  # no move led to the first step
                tokens.append(model.moves[batch.moves[b, step]] + model.times[2 * step])
                regions.append(-1)
        else:
            token = token + model.times[step]
        if model.places is not None:
            token = token + model.places.table()[batch.places[b, step]]
        tokens.append(token)
        regions.append(int(batch.regions[b, step]))
    assert batch.query_rows is not None and batch.query_moves is not None
    first = code_of(int(batch.query_rows[b]))
    queries = [first]
    for k in range(model.task.answers):
        if config.move_query == "displacement":
            assert model.displacements is not None
            x, y = sum(MOVES[move] for move in batch.query_moves[b, : k + 1])
            of_columns, of_rows = model.displacements.codes.split(19)  # -9 to 9
            queries.append(first + (of_columns[9 + x] + of_rows[9 + y]) / 2)
        else:
            assert model.moves is not None
            queries.append(model.moves[batch.query_moves[b, k]])
    query = torch.stack(queries)
    if config.move_query == "moves":
        query = query + model.times[-len(queries) :]
    memory = torch.stack(tokens)
    for number, layer in enumerate(model.reader.layers):
        assert isinstance(layer, MemoryLayer)
        if model.place_head is not None and model.places is not None and number == config.place_layers:
            logits = model.place_head(query)
            if model.has_fixed_codes:
                query = logits.detach().softmax(1) @ model.places.table()
            else:
                query = query + logits.softmax(1) @ model.places.table()
        if number == config.place_layers:
            before_reading = query
        groups, top_k = [[i] for i in range(len(memory))], len(memory)
        if config.is_chunked and number >= config.flat_layers:
            groups, top_k = [], config.top_k
            by_place = config.memory == "sat-pm-ph"
            for region in sorted(set(regions)) if by_place else (None,):
                of_region = [i for i, score in enumerate(regions) if not by_place or score == region]
                groups += [of_region[i : i + config.chunk] for i in range(0, len(of_region), config.chunk)]
        query = layer_plainly(layer, query, memory, groups, top_k)
    return model.head((query - before_reading if model.has_fixed_codes else query)[1:])


@pytest.mark.slow
def test_answers_and_gradients_are_those_of_the_equations() -> None:
    strategies = ("fifo", "mvfo", "fifo")  # of the episodes of a batch
    for settings in (
        {"memory": "sat-fifo"},
        {"memory": "t-fifo", "initialisation": "release"},
        {"memory": "t-fifo+a", "move_query": "moves"},
        {"memory": "sat-pm-ph", "capacity": None, "place_layers": 1, "place_code": "learned2d"},
        {"memory": "sat-pm-ph", "place_layers": 2, "flat_layers": 1},
        {"memory": "sat-fifo-th"},
        {"memory": "sat-fifo", "place_layers": 2, "convolutions": "components", "place_code": "learned2d"},
        {"memory": "sat-pm-ph", "place_layers": 1, "flat_layers": 1, "convolutions": "components"},
        {"memory": "sat-fifo", "convolutions": "components", "move_query": "moves"},
        {"memory": "t-fifo", "convolutions": "components", "place_layers": 1},
    ):
        torch.manual_seed(1)
        model = PictureModel(RandomPictures(), **{**SMALL, **settings})
        batch = model.task.sample_batch(B, np.random.default_rng(2))
        answers = model(batch, np.array([STRATEGY_NAMES.index(name) for name in strategies]))
        plain = torch.stack([plain_answer(model, batch, name, b) for b, name in enumerate(strategies)])
        torch.testing.assert_close(answers, plain, rtol=1e-4, atol=1e-5)
        used = [parameter for parameter in model.parameters() if parameter.requires_grad]
        ours, theirs = (
            torch.autograd.grad(output.square().mean(), used, allow_unused=True) for output in (answers, plain)
        )
        for one, other in zip(ours, theirs, strict=True):
            if one is not None and other is not None:
                torch.testing.assert_close(one, other, rtol=1e-2, atol=1e-5)


def test_a_model_that_compares_starts_with_what_differs_between_memory_and_query() -> None:
    """With one step in memory all attention is on it, so that at the start the head gets that step less the query."""
    torch.manual_seed(0)
    model = PictureModel(RandomPictures(classes=4), **SMALL, memory="sat-fifo", capacity=1, compares=True)
    batch = model.task.sample_batch(B, np.random.default_rng(0))
    inputs = model.reader_inputs(batch)
    assert inputs.tokens.values is not None and batch.query_rows is not None
    (query,) = model.encode(batch, [batch.query_rows])
    torch.testing.assert_close(model(batch), model.head(inputs.tokens.values[:, 0] - query))
    with pytest.raises(ValueError, match="compares must be False in a task whose query is no picture or whose answer"):
        PictureModel(RandomPictures(), **SMALL, compares=True)
    for settings in ({"initialisation": "release"}, {"memory": "lstm"}):
        with pytest.raises(ValueError, match="compares must be False with initialisation 'release' and with"):
            PictureModel(RandomPictures(classes=4), **{**SMALL, **settings}, compares=True)


def test_a_model_has_the_published_number_of_weights() -> None:
    model = PictureModel(RandomPictures(), move_query="moves")
    assert sum(parameter.numel() for parameter in model.parameters()) == 877_091


def test_calibrated_parts_of_a_token_have_the_same_size_and_time_a_quarter() -> None:
    model = PictureModel(RandomPictures(), memory="sat-fifo")
    assert model.places is not None
    for codes, size in ((model.places.table(), 1.0), (model.times, 0.25)):
        assert codes.square().mean().sqrt().item() == pytest.approx(size, rel=1e-4)
        assert codes.mean(0).abs().max() < 1e-4
    products = [codes[:, :, None] * codes[:, None] for codes in (model.times, model.places.table())]
    torch.testing.assert_close(
        model.added_moments(), sum(product.mean(0) for product in products), rtol=1e-4, atol=1e-5
    )


def test_fixed_convolutions_see_the_views_that_batches_share_once(monkeypatch: pytest.MonkeyPatch) -> None:
    task = RandomPictures(classes=3)
    torch.manual_seed(1)
    learned, fixed = (PictureModel(task, **SMALL, convolutions=kind) for kind in ("learned", "fixed"))
    fixed.load_state_dict(learned.state_dict())
    batch = task.sample_batch(B, np.random.default_rng(2))
    batch = replace(batch, drawn=batch.pictures(np.arange(2)))  # the third picture is of this batch alone
    convolved: list[int] = []
    features = fixed.encoder.features

    def counted(pictures: Tensor) -> Tensor:
        convolved.append(len(pictures))
        return features(pictures)

    monkeypatch.setattr(fixed.encoder, "features", counted)
    strategies = np.zeros(B, np.int64)
    for _ in range(2):
        answers = [model(batch, strategies) for model in (learned, fixed)]
        torch.testing.assert_close(*answers)
    assert convolved == [2, 1, 1]
    for answer in answers:
        answer.square().sum().backward()
    torch.testing.assert_close(learned.encoder.linear.weight.grad, fixed.encoder.linear.weight.grad)
    assert all(parameter.grad is not None for parameter in learned.encoder.convolutions.parameters())
    assert all(parameter.grad is None for parameter in fixed.encoder.convolutions.parameters())
    other = PictureModel(task, **SMALL)
    fixed.load_state_dict(other.state_dict())
    torch.testing.assert_close(fixed(batch, strategies), other(batch, strategies))
    with pytest.raises(ValueError, match="unknown convolutions 'frozen'"):
        PictureModel(task, convolutions="frozen")


def test_settings_that_do_not_fit_the_task_are_refused_by_name() -> None:
    task, of_classes = RandomPictures(), RandomPictures(classes=3)
    for refused, settings, words in (
        (of_classes, {"memory": "t-fifo+a"}, "memory must be one without moves"),
        (of_classes, {"place_layers": 1}, "place_layers must be 0"),
        (of_classes, {"convolutions": "components"}, "convolutions must be 'learned' or 'fixed' in a task of patches"),
        (task, {"memories": 1}, "unknown setting 'memories'"),
        (task, {"capacity": 3, "strategy": "quota"}, "capacity must be at least n_places"),
        (task, {"convolutions": "components", "dim": 6}, "dim must be at least 8 with .* got 6"),
    ):
        with pytest.raises(ValueError, match=words):
            PictureModel(refused, **settings)
    task.columns = None
    with pytest.raises(ValueError, match="move_query must be 'moves' in a task whose places are no grid"):
        PictureModel(task)


@torch.no_grad()
def test_with_fixed_codes_a_model_starts_by_reading_the_predicted_place() -> None:
    """The decoder is given the mean token of the place, and of all tokens without codes of places."""
    sizes = {"dim": 64, "layers": 3, "place_layers": 1, "capacity": None, "chunk": 2, "convolutions": "components"}
    for memory in ("sat-fifo", "sat-pm-ph"):
        flat = int(memory == "sat-pm-ph")
        torch.manual_seed(0)
        model = PictureModel(RandomPictures(), **sizes, memory=memory, place_code="learned2d", flat_layers=flat)
        batch = model.task.sample_batch(B, np.random.default_rng(2))
        cells = np.array([7, 96, 38, 54, 7, 61, 20, 7, 85])  # no two in one row or column, but for the 7
        batch = replace(batch, places=np.tile(cells, (B, 1)), regions=np.tile(cells % 4, (B, 1)))
        assert model.place_head is not None
        model.place_head.weight.zero_()
        model.place_head.bias.zero_()[7] = 100.0
        decoded: list[Tensor] = []
        model.head.register_forward_pre_hook(lambda _, inputs, to=decoded: to.append(inputs[0]))
        strategies = np.zeros(B, np.int64)
        model.predict(batch, strategies)
        tokens = model.reader_inputs(batch, strategies).tokens.values
        assert tokens is not None
        expected = tokens[:, cells == 7].mean(1, keepdim=True).expand(-1, 4, -1)
        assert (decoded[0].unflatten(0, (B, -1)) - expected).square().mean() < 0.03 * expected.square().mean()
        assert model.places is not None
        others = torch.linalg.svd(model.places.table()).Vh[18:]  # 9 rows and 9 columns differ
        assert all(layer.folded_query(others).abs().max() < 1e-4 for layer in model.reader.layers[1:])
        code = model.places.table()[7]
        logit = (model.reader.layers[1].folded_query(code) @ code / code.square().mean()).item()
        assert logit == pytest.approx(20 * (2 if memory == "sat-pm-ph" else 1), rel=0.05)  # a chunk's, of 2 tokens
        elsewhere = tokens[:, cells != 7].mean(1, keepdim=True)
        assert (elsewhere - expected).square().mean() > 0.5 * expected.square().mean()


def test_with_fixed_codes_the_encoder_learns_nothing_and_answers_do_not_move_the_predicted_place() -> None:
    torch.manual_seed(0)
    model = PictureModel(RandomPictures(), **SMALL, place_layers=1, convolutions="components")
    batch = model.task.sample_batch(B, np.random.default_rng(2))
    answers, _, places = model.predict(batch, np.zeros(B, np.int64))
    assert places is not None

    def parts(loss: Tensor) -> set[str]:
        model.zero_grad()
        loss.backward(retain_graph=True)
        return {name.split(".")[0] for name, parameter in model.named_parameters() if parameter.grad is not None}

    assert parts(answers.square().mean()) == {"head", "reader"}
    assert parts(places.square().mean()) == {"reader", "place_head", "displacements"}
    frozen = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
    assert frozen == {name for name, _ in model.named_parameters() if name.startswith("encoder")}
