"""Hugging Face's own code, as families named `hf-...`. Needs transformers."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

import torch
from family import Family, Size, classes, ids, numbers, padded_ids
from torch import Tensor, nn


class Logits(nn.Module):
    """A library's model as one that returns its first output."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Optional[Tensor] = None) -> Tensor:
        return self.model(input_ids=input_ids, attention_mask=attention_mask)[0]


def hugging_face(kind: str, head: str, attention: str = "sdpa", **config: Any) -> Callable[[Size], nn.Module]:
    def build(size: Size) -> nn.Module:
        import transformers

        common = dict(
            vocab_size=size.vocabulary, hidden_size=size.hidden, num_hidden_layers=size.layers,
            num_attention_heads=size.heads, intermediate_size=2 * size.hidden, max_position_embeddings=2 * size.length,
            pad_token_id=0, bos_token_id=1, eos_token_id=2, use_cache=False,
        )  # fmt: skip
        settings = transformers.AutoConfig.for_model(kind, **{**common, **config})
        return Logits(getattr(transformers, head).from_config(settings, attn_implementation=attention))

    return build


class Floats(nn.Module):
    """The same of images or sound."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, values: Tensor) -> Tensor:
        return self.model(values)[0]


def of_floats(kind: str, head: str, **config: Any) -> Callable[[Size], nn.Module]:
    def build(size: Size) -> nn.Module:
        import transformers

        common = dict(hidden_size=size.hidden, num_hidden_layers=size.layers, num_attention_heads=size.heads,
                      intermediate_size=2 * size.hidden, num_labels=5)  # fmt: skip
        model = getattr(transformers, head).from_config(transformers.AutoConfig.for_model(kind, **{**common, **config}))
        return Floats(model.requires_grad_(True))  # Whisper's positions, too

    return build


LM, MLM, CLASSIFY = "AutoModelForCausalLM", "AutoModelForMaskedLM", "AutoModelForSequenceClassification"


def words(inputs: Callable[[Size], Dict[str, Tensor]]) -> Callable[[Size], Dict[str, Tensor]]:
    """Without the padding token: PyTorch gives its row no gradient (`padding_idx`), which no ONNX file says."""
    return lambda size: {n: t.clamp(min=1) if n == "input_ids" else t for n, t in inputs(size).items()}


def filled_up(size: Size) -> Dict[str, Tensor]:
    """With the padding token where nothing is: masked, it has no gradient anyway."""
    given = padded_ids(size)
    return {**given, "input_ids": given["input_ids"].clamp(min=1) * given["attention_mask"]}


# Buffers that look like parameters: sines that are added to hidden states, and what a router adds before it chooses.
BUFFERS = {
    "xglm": ("model.model.embed_positions.weights",),
    "ctrl": ("model.transformer.pos_encoding",),
    "deepseek-v3": ("model.model.layers.1.mlp.gate.e_score_correction_bias",),
}


def library_families() -> Dict[str, Family]:
    result = {}
    for name, kind, config in [
        ("neox", "gpt_neox", dict(rotary_pct=0.5)),
        ("neox-sequential", "gpt_neox", dict(rotary_pct=0.25, use_parallel_residual=False)),
        ("gptj", "gptj", dict(n_embd=32, n_layer=2, n_head=4, rotary_dim=4, n_positions=20)),
        ("phi", "phi", dict(partial_rotary_factor=0.5)),
        ("phi3", "phi3", dict()),
        ("gemma", "gemma", dict(head_dim=12, num_key_value_heads=1)),
        ("gemma2", "gemma2", dict(head_dim=12, num_key_value_heads=2, sliding_window=4, query_pre_attn_scalar=12)),
        ("gemma3", "gemma3_text", dict(head_dim=12, num_key_value_heads=2, sliding_window=4)),
        ("mistral", "mistral", dict(num_key_value_heads=2, sliding_window=4)),
        ("qwen3", "qwen3", dict(num_key_value_heads=2, head_dim=12)),
        ("olmo2", "olmo2", dict(num_key_value_heads=2)),
        ("falcon", "falcon", dict(multi_query=True, new_decoder_architecture=False, parallel_attn=True, alibi=False)),
        ("opt", "opt", dict(ffn_dim=64, word_embed_proj_dim=32)),
        ("bloom", "bloom", dict(n_layer=2, n_head=4)),
        ("mpt", "mpt", dict(d_model=32, n_heads=4, n_layers=2, max_seq_len=20)),
        ("gpt-neo", "gpt_neo", dict(num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]], window_size=4)),
        ("starcoder2", "starcoder2", dict(num_key_value_heads=2)),
        ("stablelm", "stablelm", dict(num_key_value_heads=2, partial_rotary_factor=0.5)),
        ("cohere", "cohere", dict(num_key_value_heads=2)),
        ("granite", "granite", dict(num_key_value_heads=2, attention_multiplier=0.3, residual_multiplier=0.7, logits_scaling=2.0)),
        ("gpt-bigcode", "gpt_bigcode", dict(n_embd=32, n_layer=2, n_head=4, n_inner=64, multi_query=True)),
        ("mixtral", "mixtral", dict(num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2,
                                    experts_implementation="batched_mm")),
        ("qwen2-moe", "qwen2_moe", dict(num_key_value_heads=2, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=48,
                                        shared_expert_intermediate_size=32, experts_implementation="batched_mm")),
        ("olmoe", "olmoe", dict(num_key_value_heads=2, num_experts=4, num_experts_per_tok=2,
                                experts_implementation="batched_mm")),
        ("deepseek-v3", "deepseek_v3", dict(
            num_key_value_heads=4, n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=48, first_k_dense_replace=1,
            n_group=2, topk_group=1, q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=4, qk_nope_head_dim=8, v_head_dim=8,
            experts_implementation="batched_mm")),
        ("cohere2", "cohere2", dict(num_key_value_heads=2, sliding_window=4)),
        ("smollm3", "smollm3", dict(num_key_value_heads=2)),
        ("glm4", "glm4", dict(num_key_value_heads=2, head_dim=8)),
        ("nemotron", "nemotron", dict(num_key_value_heads=2)),
        ("gpt-oss", "gpt_oss", dict(num_key_value_heads=2, head_dim=8, num_local_experts=4, num_experts_per_tok=2, sliding_window=4,
                                    experts_implementation="batched_mm")),
        ("persimmon", "persimmon", dict()),
        ("codegen", "codegen", dict(n_embd=32, n_layer=2, n_head=4, rotary_dim=4, n_positions=20)),
        ("xglm", "xglm", dict(d_model=32, num_layers=2, attention_heads=4, ffn_dim=64)),
        ("biogpt", "biogpt", dict()),
        ("ctrl", "ctrl", dict(n_embd=32, n_layer=2, n_head=4, dff=64, n_positions=20)),
    ]:  # fmt: skip
        for attention in ("sdpa", "eager"):
            # Score caps, gpt-neo, mpt ... have their own.
            if (attention, name) in (("sdpa", "bloom"), ("sdpa", "gemma2"), ("sdpa", "mpt"), ("sdpa", "gpt-neo"), ("sdpa", "gptj"), ("sdpa", "codegen"),
                                     ("sdpa", "ctrl"), ("sdpa", "gpt-oss"), ("sdpa", "xglm")):
                continue
            result[f"hf-{name}-{attention}"] = Family(
                hugging_face(kind, LM, attention, **config), words(ids), classes, tables=BUFFERS.get(name, ())
            )
        result[f"hf-{name}-padded"] = Family(
            hugging_face(kind, LM, attention, **config), words(padded_ids), classes, tables=BUFFERS.get(name, ())
        )
    for name, kind, config in [
        ("roberta", "roberta", dict(type_vocab_size=1)),
        ("distilbert", "distilbert", dict(dim=32, n_layers=2, n_heads=4, hidden_dim=64)),
        ("electra", "electra", dict(embedding_size=16)),
        ("mpnet", "mpnet", dict()),
        ("albert", "albert", dict(embedding_size=16)),
        ("bert", "bert", dict()),
        ("camembert", "camembert", dict(type_vocab_size=1)),
        ("xlm-roberta", "xlm-roberta", dict(type_vocab_size=1)),
        ("mobilebert", "mobilebert", dict(embedding_size=16, intra_bottleneck_size=16, num_feedforward_networks=2)),
        ("squeezebert", "squeezebert", dict(embedding_size=32, q_groups=1, k_groups=1, v_groups=1, post_attention_groups=1,
                                            intermediate_groups=1, output_groups=1)),
        ("megatron-bert", "megatron-bert", dict()),
        ("roformer", "roformer", dict(embedding_size=16)),
        ("modernbert", "modernbert", dict(local_attention=4, global_attn_every_n_layers=2)),
        ("ernie", "ernie", dict()),
        ("esm", "esm", dict(position_embedding_type="rotary", mask_token_id=3)),
        ("deberta", "deberta", dict(relative_attention=True, pos_att_type=["p2c", "c2p"])),
        ("deberta-v2", "deberta-v2", dict(relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=4)),
    ]:
        shares = kind.startswith("deberta")  # one table of distances for all layers
        result[f"hf-{name}-mlm"] = Family(
            hugging_face(kind, MLM, "eager", **config), words(padded_ids), classes, shares=shares
        )
        result[f"hf-{name}-classify"] = Family(
            hugging_face(kind, CLASSIFY, "eager", num_labels=5, **config), words(padded_ids), classes, shares=shares
        )
    # The logits of the last token that is no padding.
    for name, kind, config in [
        ("gpt2", "gpt2", dict(n_embd=32, n_layer=2, n_head=4)),
        ("llama", "llama", dict(num_key_value_heads=2)),
        ("neox", "gpt_neox", dict(rotary_pct=0.5)),
        ("opt", "opt", dict(ffn_dim=64, word_embed_proj_dim=32)),
        ("bloom", "bloom", dict(n_layer=2, n_head=4)),
    ]:
        result[f"hf-{name}-classify"] = Family(
            hugging_face(kind, CLASSIFY, "eager", num_labels=5, **config), filled_up, classes
        )
    result["hf-t5-encoder"] = Family(
        hugging_face("t5", "AutoModelForTextEncoding", "eager", d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4),
        words(padded_ids), numbers, loss="mse",
    )  # fmt: skip
    image = dict(image_size=16, patch_size=4, num_channels=3)
    sound = dict(conv_dim=(32, 32), conv_stride=(4, 2), conv_kernel=(8, 3), num_feat_extract_layers=2,
                 num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2, classifier_proj_size=16)  # fmt: skip
    images = lambda s: {"values": torch.randn(s.batch, 3, 16, 16)}
    for name, kind, head, config, values in [
        ("vit", "vit", "AutoModelForImageClassification", image, images),
        ("dinov2", "dinov2", "AutoModelForImageClassification", image, images),
        ("clip-vision", "clip_vision_model", "AutoModel", image, images),
        ("siglip-vision", "siglip_vision_model", "AutoModel", image, images),
        ("whisper-encoder", "whisper", "AutoModelForAudioClassification",
         dict(d_model=32, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=64, num_mel_bins=6, max_source_positions=10,
              classifier_proj_size=16), lambda s: {"values": torch.randn(s.batch, 6, 20)}),
        ("wav2vec2", "wav2vec2", "AutoModelForAudioClassification", sound, lambda s: {"values": torch.randn(s.batch, 96)}),
        ("hubert", "hubert", "AutoModelForAudioClassification", sound, lambda s: {"values": torch.randn(s.batch, 96)}),
    ]:  # fmt: skip
        result[f"hf-{name}"] = Family(of_floats(kind, head, **config), values, classes)
    return result
