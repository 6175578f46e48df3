"""Small folders of pretrained encoders, in the format of Hugging Face, with random weights."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def write_encoder(folder: Path, words: list[str], *, size: int = 16, seed: int = 0) -> Path:
    """Write an encoder of two layers that knows some words, and return its folder."""
    from transformers import BertConfig, BertModel

    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {piece: i for i, piece in enumerate([*PIECES, *words])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.add_special_tokens(PIECES)
    tokenizer.save(str(folder / "tokenizer.json"))
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=size,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    network = BertModel(config, add_pooling_layer=False)
    for weight in network.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    save_file(network.state_dict(), folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps({**config.to_dict(), "model_type": "bert"}))
    return folder
