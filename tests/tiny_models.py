"""Random models of one layer, made in a moment, for tests that ask how a model is used and not what it knows."""

from pathlib import Path

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "refund", "policy", "возврат", "товара", "###"]
LETTERS = [*"abcdefghijklmnopqrstuvwxyzабвгдежзийклмнопрстуфхцчшщъыьэюя0123456789.,?!"]


def tokenizer(folder: Path, **settings):
    from transformers import BertTokenizerFast

    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = folder / "vocab.txt"
    pieces = [*WORDS, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    vocabulary.write_text("\n".join(dict.fromkeys(pieces)), encoding="utf-8")
    return BertTokenizerFast(str(vocabulary), **{"model_max_length": 64, **settings})


def config(labels: int = 1):
    from transformers import BertConfig

    return BertConfig(
        vocab_size=len({*WORDS, *LETTERS}) + len(LETTERS),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        num_labels=labels,
    )


def embedder(folder: Path, dtype: str = "float32", **settings) -> Path:
    """A sentence-transformers folder with mean pooling and no normalisation of its own."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertModel

    torch.manual_seed(7)
    base = folder.parent / f"{folder.name}-base"
    tokenizer(base, **settings).save_pretrained(base)
    BertModel(config()).to(getattr(torch, dtype)).save_pretrained(base)
    SentenceTransformer(modules=[Transformer(str(base)), Pooling(32, "mean")], device="cpu").save(str(folder))
    return folder


def cross_encoder(folder: Path, labels: int = 1, **settings) -> Path:
    """A folder as transformers itself writes it, so that sentence-transformers would put a sigmoid on one label."""
    import torch
    from transformers import BertForSequenceClassification

    torch.manual_seed(7)
    tokenizer(folder, **settings).save_pretrained(folder)
    model = BertForSequenceClassification(config(labels))
    torch.nn.init.normal_(model.classifier.weight, std=1.0)
    model.save_pretrained(folder)
    return folder


def last_token_cross_encoder(folder: Path) -> Path:
    """A decoder with a score on the last token and no padding token, in the tokenizer or in the model."""
    import torch
    from transformers import GPT2Config, GPT2ForSequenceClassification

    torch.manual_seed(7)
    made = tokenizer(folder)
    made.pad_token = None
    made.save_pretrained(folder)
    size = config().vocab_size
    shape = GPT2Config(vocab_size=size, n_positions=64, n_embd=32, n_layer=1, n_head=2, num_labels=1, pad_token_id=None)
    model = GPT2ForSequenceClassification(shape)
    torch.nn.init.normal_(model.score.weight, std=1.0)
    model.save_pretrained(folder)
    return folder


def onnx_encoder(folder: Path, axis: int | None = None) -> Path:
    """A vector for each token from a table, quantised by the range of everything in the call, as the large ones are.

    `axis` is the one that the model itself takes the mean over.
    """
    import numpy as np
    import onnx

    tokenizer(folder).save_pretrained(folder)
    table = np.random.default_rng(7).normal(size=(config().vocab_size, 16)).astype(np.float32)
    node, info = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    names = ("input_ids", "attention_mask", "token_type_ids")
    nodes = [
        node("Gather", ["table", "input_ids"], ["found"]),
        node("DynamicQuantizeLinear", ["found"], ["small", "scale", "zero"]),
        node("DequantizeLinear", ["small", "scale", "zero"], ["vectors"]),
        node("Identity", ["vectors"], ["out"])
        if axis is None
        else node("ReduceMean", ["vectors"], ["out"], axes=[axis], keepdims=0),
    ]
    graph = onnx.helper.make_graph(
        nodes,
        "encoder",
        [info(name, onnx.TensorProto.INT64, ["texts", "tokens"]) for name in names],
        [info("out", onnx.TensorProto.FLOAT, ["texts", "tokens", 16] if axis is None else ["texts", 16])],
        [onnx.numpy_helper.from_array(table, "table")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, folder / "model.onnx")
    return folder
