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
