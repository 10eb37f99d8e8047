"""Transformers of the kinds that people have, small, each in its own way.

What the golden cases beside the checkout lack: PyTorch's own attention modules,
parallel residuals, rotary on a part of the head, ALiBi, relative positions, soft
caps, sliding windows, norms on queries and keys, pooled heads, float inputs,
scales of one number. library_models.py has Hugging Face's own code.
"""

from __future__ import annotations

import math
from typing import Callable, Dict

import torch
import torch.nn.functional as F
from family import Family, Size, classes, ids, numbers, padded_ids, tokens
from torch import Tensor, nn


# ===-- Parts ---------------------------------------------------------------===#


class RmsNorm(nn.Module):
    """Llama's; Gemma's with `offset` 1."""

    def __init__(self, extent: int, offset: float = 0.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(extent))
        self.offset = offset

    def forward(self, x: Tensor) -> Tensor:
        normal = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return normal * (self.offset + self.weight) if self.offset else normal * self.weight


def causal(length: int) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool).tril()


def angles(length: int, rotated: int) -> Tensor:
    frequencies = 10000.0 ** (-torch.arange(0, rotated, 2).float() / rotated)
    return torch.outer(torch.arange(length).float(), frequencies)


def rotate_halves(x: Tensor, angle: Tensor) -> Tensor:
    """NeoX: pairs are i and i + R/2; elements beyond the rotated ones stay."""
    rotated = 2 * angle.shape[-1]
    turned, rest = x[..., :rotated], x[..., rotated:]
    first, second = turned.chunk(2, -1)
    both = torch.cat((angle, angle), -1)
    turned = turned * both.cos() + torch.cat((-second, first), -1) * both.sin()
    return torch.cat((turned, rest), -1)


def rotate_neighbours(x: Tensor, angle: Tensor) -> Tensor:
    """GPT-J: pairs are 2i and 2i + 1."""
    rotated = 2 * angle.shape[-1]
    turned, rest = x[..., :rotated], x[..., rotated:]
    even, odd = turned[..., ::2], turned[..., 1::2]
    cos, sin = angle.cos(), angle.sin()
    turned = torch.stack((even * cos - odd * sin, odd * cos + even * sin), -1).flatten(-2)
    return torch.cat((turned, rest), -1)


def split_heads(x: Tensor, heads: int) -> Tensor:
    batch, length, width = x.shape
    return x.view(batch, length, heads, width // heads).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    return x.transpose(1, 2).flatten(2)


class Decoder(nn.Module):
    """Embeddings, blocks, final norm, head; a family says what a block is."""

    def __init__(self, size: Size, block: Callable[[Size], nn.Module], norm: Callable[[int], nn.Module] = nn.LayerNorm,
                 tied: bool = False, positions: int = 0, scale: float = 1.0, cap: float = 0.0) -> None:  # fmt: skip
        super().__init__()
        self.embed = nn.Embedding(size.vocabulary, size.hidden)
        self.positions = nn.Embedding(size.length + positions, size.hidden) if positions >= 0 else None
        self.offset, self.scale, self.cap = positions, scale, cap
        self.blocks = nn.ModuleList(block(size) for _ in range(size.layers))
        self.norm = norm(size.hidden)
        self.head = nn.Linear(size.hidden, size.vocabulary, bias=False)
        if tied:
            self.head.weight = self.embed.weight

    def forward(self, input_ids: Tensor) -> Tensor:
        x = self.embed(input_ids) * self.scale
        if self.positions is not None:
            x = x + self.positions(torch.arange(input_ids.shape[1]) + self.offset)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return torch.tanh(logits / self.cap) * self.cap if self.cap else logits


# ===-- PyTorch's own modules -----------------------------------------------===#


class StockBlock(nn.Module):
    def __init__(self, size: Size, batch_first: bool, weights: bool) -> None:
        super().__init__()
        self.batch_first, self.weights = batch_first, weights
        self.norm = nn.LayerNorm(size.hidden)
        self.attention = nn.MultiheadAttention(size.hidden, size.heads, batch_first=batch_first)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        if not self.batch_first:
            y = y.transpose(0, 1)
        mask = ~causal(x.shape[1])
        y = self.attention(y, y, y, attn_mask=mask, need_weights=self.weights)[0]
        return x + (y if self.batch_first else y.transpose(0, 1))


class StockEncoder(nn.Module):
    """nn.TransformerEncoder under a mean over the tokens that are there."""

    def __init__(self, size: Size, norm_first: bool, batch_first: bool) -> None:
        super().__init__()
        self.embed = nn.Embedding(size.vocabulary, size.hidden)
        layer = nn.TransformerEncoderLayer(
            size.hidden, size.heads, 2 * size.hidden, activation="gelu" if norm_first else "relu",
            batch_first=batch_first, norm_first=norm_first,
        )  # fmt: skip
        self.encoder = nn.TransformerEncoder(layer, size.layers, norm=nn.LayerNorm(size.hidden), enable_nested_tensor=False)
        self.batch_first = batch_first
        self.head = nn.Linear(size.hidden, 5)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        x = self.embed(input_ids)
        if not self.batch_first:
            x = x.transpose(0, 1)
        x = self.encoder(x, src_key_padding_mask=attention_mask == 0)
        if not self.batch_first:
            x = x.transpose(0, 1)
        here = attention_mask.unsqueeze(-1).float()
        return self.head((x * here).sum(1) / here.sum(1))


class StockSeq2Seq(nn.Module):
    """nn.Transformer: encoder, decoder with cross-attention."""

    def __init__(self, size: Size, batch_first: bool = True) -> None:
        super().__init__()
        self.source = nn.Embedding(size.vocabulary, size.hidden)
        self.target = nn.Embedding(size.vocabulary, size.hidden)
        self.batch_first = batch_first
        self.transformer = nn.Transformer(
            size.hidden, size.heads, 1, size.layers, 2 * size.hidden, batch_first=batch_first, norm_first=True
        )
        self.head = nn.Linear(size.hidden, size.vocabulary)

    def forward(self, input_ids: Tensor, decoder_ids: Tensor) -> Tensor:
        source, target = self.source(input_ids), self.target(decoder_ids)
        mask = torch.triu(torch.full((decoder_ids.shape[1],) * 2, float("-inf")), diagonal=1)
        if not self.batch_first:
            source, target = source.transpose(0, 1), target.transpose(0, 1)
        # Left open, the module compares the mask, which torch.export cannot trace.
        y = self.transformer(source, target, tgt_mask=mask, tgt_is_causal=True)
        return self.head(y if self.batch_first else y.transpose(0, 1))


class StockGpt(nn.Module):
    """The tutorial's model: TransformerEncoderLayer with a causal mask, sines as positions."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.embed = nn.Embedding(size.vocabulary, size.hidden)
        angle = angles(size.length, size.hidden)
        table = torch.stack((angle.sin(), angle.cos()), -1).flatten(-2)
        self.register_buffer("table", table[None])
        layer = nn.TransformerEncoderLayer(size.hidden, size.heads, 2 * size.hidden, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, size.layers, enable_nested_tensor=False)
        self.head = nn.Linear(size.hidden, size.vocabulary)
        self.scale = math.sqrt(size.hidden)

    def forward(self, input_ids: Tensor) -> Tensor:
        length = input_ids.shape[1]
        x = self.embed(input_ids) * self.scale + self.table[:, :length]
        mask = torch.triu(torch.full((length, length), float("-inf")), diagonal=1)
        return self.head(self.encoder(x, mask=mask, is_causal=True))


# ===-- Decoders ------------------------------------------------------------===#


class NeoXBlock(nn.Module):
    """Parallel residual, one projection with q, k, v of a head side by side, partial rotary."""

    def __init__(self, size: Size, interleaved: bool = False, one_norm: bool = False) -> None:
        super().__init__()
        self.size, self.rotated, self.interleaved = size, size.head // 2, interleaved
        self.norm1 = nn.LayerNorm(size.hidden)
        self.norm2 = None if one_norm else nn.LayerNorm(size.hidden)
        self.qkv = nn.Linear(size.hidden, 3 * size.hidden)
        self.out = nn.Linear(size.hidden, size.hidden)
        self.up, self.down = nn.Linear(size.hidden, 4 * size.hidden), nn.Linear(4 * size.hidden, size.hidden)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        y = self.norm1(x)
        heads = self.qkv(y).view(batch, length, self.size.heads, 3 * self.size.head).transpose(1, 2)
        q, k, v = heads.chunk(3, -1)
        rotate = rotate_neighbours if self.interleaved else rotate_halves
        angle = angles(length, self.rotated)
        scores = rotate(q, angle) @ rotate(k, angle).transpose(-1, -2) / math.sqrt(self.size.head)
        scores = scores.masked_fill(~causal(length), torch.finfo(torch.float32).min)
        attended = self.out(join_heads(scores.softmax(-1) @ v))
        z = y if self.norm2 is None else self.norm2(x)
        return x + attended + self.down(F.gelu(self.up(z), approximate="tanh" if self.interleaved else "none"))


class GemmaBlock(nn.Module):
    """Heads wider than hidden / heads, norms before and after, capped scores, GeGLU, every other layer local."""

    def __init__(self, size: Size, window: int = 0, cap: float = 0.0) -> None:
        super().__init__()
        self.heads, self.groups, self.head, self.window, self.cap = size.heads, size.heads // 2, 12, window, cap
        self.norms = nn.ModuleList(RmsNorm(size.hidden, 1.0) for _ in range(4))
        self.q = nn.Linear(size.hidden, self.heads * self.head, bias=False)
        self.k = nn.Linear(size.hidden, self.groups * self.head, bias=False)
        self.v = nn.Linear(size.hidden, self.groups * self.head, bias=False)
        self.o = nn.Linear(self.heads * self.head, size.hidden, bias=False)
        self.gate, self.up = (nn.Linear(size.hidden, 2 * size.hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * size.hidden, size.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        y = self.norms[0](x)
        angle = angles(length, self.head)
        q = rotate_halves(split_heads(self.q(y), self.heads), angle)
        k = rotate_halves(split_heads(self.k(y), self.groups), angle).repeat_interleave(2, 1)
        v = split_heads(self.v(y), self.groups).repeat_interleave(2, 1)
        scores = q @ k.transpose(-1, -2) * 0.25
        if self.cap:
            scores = torch.tanh(scores / self.cap) * self.cap
        visible = causal(length)
        if self.window:
            visible = visible & ~torch.ones_like(visible).tril(-self.window)
        scores = scores + torch.where(visible, 0.0, -2.3e38)
        x = x + self.norms[1](self.o(join_heads(scores.softmax(-1) @ v)))
        y = self.norms[2](x)
        return x + self.norms[3](self.down(F.gelu(self.gate(y), approximate="tanh") * self.up(y)))


class MistralBlock(nn.Module):
    """Sliding window through PyTorch's attention, grouped key/value heads."""

    def __init__(self, size: Size, window: int = 4, qk_norm: str = "") -> None:
        super().__init__()
        self.size, self.groups, self.window, self.qk_norm = size, size.heads // 2, window, qk_norm
        self.norm1, self.norm2 = RmsNorm(size.hidden), RmsNorm(size.hidden)
        self.q = nn.Linear(size.hidden, size.hidden, bias=False)
        self.k = nn.Linear(size.hidden, self.groups * size.head, bias=False)
        self.v = nn.Linear(size.hidden, self.groups * size.head, bias=False)
        self.o = nn.Linear(size.hidden, size.hidden, bias=False)
        self.gate, self.up = (nn.Linear(size.hidden, 2 * size.hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * size.hidden, size.hidden, bias=False)
        if qk_norm:
            by_head = qk_norm == "heads"  # Qwen3; OLMo2 norms the whole
            self.q_norm = RmsNorm(size.head if by_head else size.hidden)
            self.k_norm = RmsNorm(size.head if by_head else self.groups * size.head)

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        y = x if self.qk_norm == "whole" else self.norm1(x)
        q, k = self.q(y), self.k(y)
        if self.qk_norm == "whole":
            q, k = self.q_norm(q), self.k_norm(k)
        q, k = split_heads(q, self.size.heads), split_heads(k, self.groups)
        if self.qk_norm == "heads":
            q, k = self.q_norm(q), self.k_norm(k)
        v = split_heads(self.v(y), self.groups)
        angle = angles(length, self.size.head)
        q, k = rotate_halves(q, angle), rotate_halves(k, angle)
        k, v = (t[:, :, None].expand(-1, -1, 2, -1, -1).flatten(1, 2) for t in (k, v))
        visible = causal(length)
        if self.window:
            visible = visible & ~torch.ones_like(visible).tril(-self.window)
        y = self.o(join_heads(F.scaled_dot_product_attention(q, k, v, attn_mask=visible)))
        x = x + (self.norm1(y) if self.qk_norm == "whole" else y)
        y = x if self.qk_norm == "whole" else self.norm2(x)
        y = self.down(F.silu(self.gate(y)) * self.up(y))
        return x + (self.norm2(y) if self.qk_norm == "whole" else y)


class FalconBlock(nn.Module):
    """Multi-query: all heads read one key/value head; parallel residual."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.size = size
        self.norm = nn.LayerNorm(size.hidden)
        self.qkv = nn.Linear(size.hidden, size.hidden + 2 * size.head, bias=False)
        self.out = nn.Linear(size.hidden, size.hidden, bias=False)
        self.up = nn.Linear(size.hidden, 4 * size.hidden, bias=False)
        self.down = nn.Linear(4 * size.hidden, size.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        y = self.norm(x)
        heads = self.qkv(y).view(batch, length, self.size.heads + 2, self.size.head)
        q, k, v = (t.transpose(1, 2) for t in (heads[:, :, :-2], heads[:, :, [-2]], heads[:, :, [-1]]))
        angle = angles(length, self.size.head)
        q, k = rotate_halves(q, angle), rotate_halves(k, angle)
        k, v = k.expand_as(q), v.expand_as(q)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(join_heads(attended)) + self.down(F.gelu(self.up(y)))


class ExpertsBlock(nn.Module):
    """Mixtral: the experts that a router likes best, their weights looked up by token."""

    def __init__(self, size: Size, experts: int = 4, chosen: int = 2) -> None:
        super().__init__()
        self.chosen = chosen
        self.norm = RmsNorm(size.hidden)
        self.router = nn.Linear(size.hidden, experts, bias=False)
        self.gate_up = nn.Parameter(torch.zeros(experts, 3 * size.hidden, size.hidden))
        self.down = nn.Parameter(torch.zeros(experts, size.hidden, 3 * size.hidden // 2))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        shares, experts = self.router(y).softmax(-1).topk(self.chosen, -1)
        shares = shares / shares.sum(-1, keepdim=True)
        z = (self.gate_up[experts] @ y[:, :, None, :, None]).squeeze(-1)
        gate, up = z.chunk(2, -1)
        z = (self.down[experts] @ (F.silu(gate) * up).unsqueeze(-1)).squeeze(-1)
        return x + (z * shares.unsqueeze(-1)).sum(2)


class ScatteredExpertsBlock(nn.Module):
    """Experts that are all computed; what the router likes best is written back to its place."""

    def __init__(self, size: Size, experts: int = 4, chosen: int = 2) -> None:
        super().__init__()
        self.chosen = chosen
        self.norm = RmsNorm(size.hidden)
        self.router = nn.Linear(size.hidden, experts, bias=False)
        self.experts = nn.ModuleList(nn.Linear(size.hidden, size.hidden) for _ in range(experts))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        scores = self.router(y).softmax(-1)
        best, places = scores.topk(self.chosen, -1)
        shares = torch.zeros_like(scores).scatter(-1, places, best)
        return x + sum(F.gelu(expert(y)) * shares[..., i, None] for i, expert in enumerate(self.experts))


class WrittenRowBlock(nn.Module):
    """A summary of what came before takes the place of one token."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.norm, self.mix = RmsNorm(size.hidden), nn.Linear(size.hidden, size.hidden)

    def forward(self, x: Tensor) -> Tensor:
        y = self.mix(self.norm(x))
        z = y.clone()
        z[:, 2:4] = y[:, :2].cumsum(1)
        return x + z


class OneBlock(nn.Module):
    """ALBERT: one layer, called as often as others have layers."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.embed, self.calls = nn.Embedding(size.vocabulary, size.hidden), size.layers
        self.block, self.norm = AlibiBlock(size), nn.LayerNorm(size.hidden)
        self.head = nn.Linear(size.hidden, size.vocabulary)

    def forward(self, input_ids: Tensor) -> Tensor:
        x = self.embed(input_ids)
        for _ in range(self.calls):
            x = self.block(x)
        return self.head(self.norm(x))


class LastToken(nn.Module):
    """A decoder that classifies by the last token that is no padding: a place that data names."""

    def __init__(self, decoder: nn.Module, size: Size) -> None:
        super().__init__()
        self.decoder, self.head = decoder, nn.Linear(size.vocabulary, 5)

    def forward(self, input_ids: Tensor) -> Tensor:
        places = torch.arange(input_ids.shape[1])
        last = (places * (input_ids != 0)).argmax(-1)
        logits = self.head(self.decoder(input_ids))
        return logits[torch.arange(input_ids.shape[0]), last]


class AlibiBlock(nn.Module):
    """BLOOM: a slope a head times the distance, added to the scores."""

    def __init__(self, size: Size, activation: Callable[[Tensor], Tensor] = F.gelu, alibi: bool = True) -> None:
        super().__init__()
        self.size, self.activation, self.alibi = size, activation, alibi
        self.norm1, self.norm2 = nn.LayerNorm(size.hidden), nn.LayerNorm(size.hidden)
        self.q, self.k, self.v, self.out = (nn.Linear(size.hidden, size.hidden) for _ in range(4))
        self.up, self.down = nn.Linear(size.hidden, 4 * size.hidden), nn.Linear(4 * size.hidden, size.hidden)

    def forward(self, x: Tensor) -> Tensor:
        length, heads = x.shape[1], self.size.heads
        y = self.norm1(x)
        # OPT scales the queries.
        q = split_heads(self.q(y) * self.size.head**-0.5, heads)
        k, v = split_heads(self.k(y), heads), split_heads(self.v(y), heads)
        scores = q @ k.transpose(-1, -2)
        if self.alibi:
            slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)
            scores = scores + slopes[:, None, None] * torch.arange(length).float()
        scores = scores.masked_fill(~causal(length), float("-inf"))
        x = x + self.out(join_heads(scores.softmax(-1, dtype=torch.float32) @ v))
        return x + self.down(self.activation(self.up(self.norm2(x))))


class ScaledBlock(nn.Module):
    """ReZero's: each branch has a factor of one number, of shape () and (1,)."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.size = size
        self.qkv, self.out = nn.Linear(size.hidden, 3 * size.hidden), nn.Linear(size.hidden, size.hidden)
        self.up, self.down = nn.Linear(size.hidden, 2 * size.hidden), nn.Linear(2 * size.hidden, size.hidden)
        self.attention_scale = nn.Parameter(torch.tensor(0.7))
        self.inner_scale = nn.Parameter(torch.tensor([0.3]))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (split_heads(part, self.size.heads) for part in self.qkv(x).chunk(3, -1))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attention_scale * self.out(join_heads(attended))
        return x + self.inner_scale * self.down(F.relu(self.up(x)))


# ===-- Encoders ------------------------------------------------------------===#


class RelativeBias(nn.Module):
    """T5: a learned bias for each head and bucket of distances, shared by all layers."""

    def __init__(self, size: Size, buckets: int = 8, furthest: int = 16) -> None:
        super().__init__()
        self.table = nn.Embedding(buckets, size.heads)
        self.buckets, self.furthest = buckets, furthest

    def forward(self, length: int) -> Tensor:
        distance = torch.arange(length)[None, :] - torch.arange(length)[:, None]
        half = self.buckets // 2
        bucket = (distance > 0).long() * half
        distance = distance.abs()
        near = half // 2
        far = near + (torch.log(distance.float().clamp(min=1) / near) / math.log(self.furthest / near) * (half - near)).long()
        bucket = bucket + torch.where(distance < near, distance, far.clamp(max=half - 1))
        return self.table(bucket).permute(2, 0, 1)[None]


class T5Encoder(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.size = size
        self.embed = nn.Embedding(size.vocabulary, size.hidden)
        self.bias = RelativeBias(size)
        self.norms = nn.ModuleList(RmsNorm(size.hidden) for _ in range(2 * size.layers + 1))
        self.qkvo = nn.ModuleList(nn.Linear(size.hidden, size.hidden, bias=False) for _ in range(4 * size.layers))
        self.ups = nn.ModuleList(nn.Linear(size.hidden, 2 * size.hidden, bias=False) for _ in range(size.layers))
        self.downs = nn.ModuleList(nn.Linear(2 * size.hidden, size.hidden, bias=False) for _ in range(size.layers))
        self.head = nn.Linear(size.hidden, size.vocabulary, bias=False)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        x = self.embed(input_ids)
        hidden = (1.0 - attention_mask[:, None, None, :].float()) * torch.finfo(torch.float32).min
        bias = self.bias(input_ids.shape[1]) + hidden
        for i in range(self.size.layers):
            y = self.norms[2 * i](x)
            q, k, v = (split_heads(layer(y), self.size.heads) for layer in self.qkvo[4 * i : 4 * i + 3])
            scores = q @ k.transpose(3, 2) + bias
            x = x + self.qkvo[4 * i + 3](join_heads(scores.softmax(-1) @ v))
            x = x + self.downs[i](F.relu(self.ups[i](self.norms[2 * i + 1](x))))
        return self.head(self.norms[-1](x))


class RobertaEncoder(nn.Module):
    """Positions count the tokens that are there; norms behind the additions; a pooled head."""

    def __init__(self, size: Size, pool: str, outputs: int) -> None:
        super().__init__()
        self.size, self.pool = size, pool
        self.embed = nn.Embedding(size.vocabulary, size.hidden)
        self.positions = nn.Embedding(size.length + 2, size.hidden)
        self.norm = nn.LayerNorm(size.hidden)
        self.norms = nn.ModuleList(nn.LayerNorm(size.hidden) for _ in range(2 * size.layers))
        self.qkvo = nn.ModuleList(nn.Linear(size.hidden, size.hidden) for _ in range(4 * size.layers))
        self.ups = nn.ModuleList(nn.Linear(size.hidden, 2 * size.hidden) for _ in range(size.layers))
        self.downs = nn.ModuleList(nn.Linear(2 * size.hidden, size.hidden) for _ in range(size.layers))
        self.pooler = nn.Linear(size.hidden, size.hidden)
        self.head = nn.Linear(size.hidden, outputs)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        places = torch.cumsum(attention_mask, 1) * attention_mask + 1
        x = self.norm(self.embed(input_ids) + self.positions(places))
        hidden = (1.0 - attention_mask[:, None, None, :].float()) * -10000.0
        for i in range(self.size.layers):
            q, k, v = (split_heads(layer(x), self.size.heads) for layer in self.qkvo[4 * i : 4 * i + 3])
            scores = q @ k.transpose(-1, -2) / math.sqrt(self.size.head) + hidden
            x = self.norms[2 * i](x + self.qkvo[4 * i + 3](join_heads(scores.softmax(-1) @ v)))
            x = self.norms[2 * i + 1](x + self.downs[i](F.gelu(self.ups[i](x))))
        if self.pool == "first":
            return self.head(torch.tanh(self.pooler(x[:, 0])))
        here = attention_mask.unsqueeze(-1).float()
        return self.head(torch.tanh(self.pooler((x * here).sum(1) / here.sum(1).clamp(min=1e-9))))


class ExpandedLookups(nn.Module):
    """What is looked up, or expanded, for each sample: places, one kind for all tokens, a token of its own."""

    def __init__(self, s: Size) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(s.vocabulary, s.hidden), nn.Embedding(2 * s.length, s.hidden)
        self.kinds, self.first = nn.Embedding(2, s.hidden), nn.Parameter(torch.zeros(1, 1, s.hidden))
        self.block, self.head = VitBlock(s), nn.Linear(s.hidden, 5)
        self.register_buffer("numbers", torch.arange(2 * s.length)[None], persistent=False)
        self.register_buffer("kind", torch.zeros(1, 2 * s.length, dtype=torch.long), persistent=False)

    def forward(self, input_ids: Tensor) -> Tensor:
        batch, length = input_ids.shape
        x = self.words(input_ids) + self.places(self.numbers[:, :length].expand(batch, length))
        x = x + self.kinds(self.kind[:, :length].expand(batch, length))
        x = torch.cat([self.first.expand(batch, -1, -1), x], 1)
        return self.head(self.block(x)[:, 0])


class Vit(nn.Module):
    """Patches as floats, a class token before them; no token anywhere."""

    def __init__(self, size: Size, width: int = 12) -> None:
        super().__init__()
        self.patches = nn.Linear(width, size.hidden)
        self.first = nn.Parameter(torch.zeros(1, 1, size.hidden))
        self.positions = nn.Parameter(torch.zeros(1, size.length + 1, size.hidden))
        self.blocks = nn.ModuleList(VitBlock(size) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.hidden)
        self.head = nn.Linear(size.hidden, 5)

    def forward(self, pixels: Tensor) -> Tensor:
        x = self.patches(pixels)
        x = torch.cat((self.first.expand(x.shape[0], -1, -1), x), 1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class PatchVit(Vit):
    """Images: patches that do not overlap are convolved."""

    def __init__(self, size: Size) -> None:
        super().__init__(size)
        self.patches = nn.Conv2d(3, size.hidden, 4, stride=4)

    def forward(self, pixels: Tensor) -> Tensor:
        x = self.patches(pixels).flatten(2).transpose(1, 2)
        x = torch.cat((self.first.expand(x.shape[0], -1, -1), x), 1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class Speech(nn.Module):
    """Frames of sound: convolved twice, to half as many, as Whisper's; positions by a
    convolution in groups, as wav2vec's."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(6, size.hidden, 3, padding=1)
        self.conv2 = nn.Conv1d(size.hidden, size.hidden, 3, stride=2, padding=1)
        self.positions = nn.Conv1d(size.hidden, size.hidden, 4, padding=2, groups=4)
        self.blocks = nn.ModuleList(VitBlock(size) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.hidden)
        self.head = nn.Linear(size.hidden, 5)

    def forward(self, sound: Tensor) -> Tensor:
        x = F.gelu(self.conv2(F.gelu(self.conv1(sound))))
        x = x + F.gelu(self.positions(x)[:, :, :-1])
        x = x.transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1))


class VitBlock(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.size = size
        self.norm1, self.norm2 = nn.LayerNorm(size.hidden), nn.LayerNorm(size.hidden)
        self.qkv, self.out = nn.Linear(size.hidden, 3 * size.hidden), nn.Linear(size.hidden, size.hidden)
        self.up, self.down = nn.Linear(size.hidden, 2 * size.hidden), nn.Linear(2 * size.hidden, size.hidden)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        heads = self.qkv(self.norm1(x)).reshape(batch, length, 3, self.size.heads, self.size.head)
        q, k, v = heads.permute(2, 0, 3, 1, 4).unbind(0)
        attended = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, -1))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


# ===-- All of them ---------------------------------------------------------===#


def families() -> Dict[str, Family]:
    stock = {}
    for order in ("batch-first", "length-first"):
        first = order == "batch-first"
        for weights in (False, True):
            name = f"mha-{order}{'-weights' if weights else ''}"
            stock[name] = Family(
                lambda s, first=first, weights=weights: Decoder(s, lambda s: StockBlock(s, first, weights)), ids, classes
            )
        stock[f"encoder-{order}"] = Family(lambda s, first=first: StockEncoder(s, not first, first), padded_ids, classes)
        stock[f"seq2seq-{order}"] = Family(
            lambda s, first=first: StockSeq2Seq(s, first),
            lambda s: {"input_ids": tokens(s, s.batch, s.length - 1), "decoder_ids": tokens(s)}, classes,
        )  # fmt: skip
    stock["stock-gpt"] = Family(StockGpt, ids, classes, tables=("table",))
    own = {
        "neox": Family(lambda s: Decoder(s, NeoXBlock, positions=-1), ids, classes),
        "gptj": Family(lambda s: Decoder(s, lambda s: NeoXBlock(s, True, True), positions=-1), ids, classes),
        "gemma": Family(
            lambda s: Decoder(s, GemmaBlock, RmsNorm, tied=True, positions=-1, scale=math.sqrt(s.hidden)), ids, classes
        ),
        "gemma2": Family(
            lambda s: Decoder(s, lambda s: GemmaBlock(s, 4, 2.0), lambda e: RmsNorm(e, 1.0), tied=True, positions=-1,
                              scale=math.sqrt(s.hidden), cap=3.0), ids, classes,
        ),
        "mistral": Family(lambda s: Decoder(s, MistralBlock, RmsNorm, positions=-1), ids, classes),
        "qwen3": Family(lambda s: Decoder(s, lambda s: MistralBlock(s, 0, "heads"), RmsNorm, True, -1), ids, classes),
        "olmo2": Family(lambda s: Decoder(s, lambda s: MistralBlock(s, 0, "whole"), RmsNorm, False, -1), ids, classes),
        "falcon": Family(lambda s: Decoder(s, FalconBlock, tied=True, positions=-1), ids, classes),
        "mixtral": Family(
            lambda s: Decoder(s, lambda s: nn.Sequential(MistralBlock(s, 0), ExpertsBlock(s)), RmsNorm, positions=-1), ids, classes
        ),
        "scattered-experts": Family(
            lambda s: Decoder(s, lambda s: nn.Sequential(MistralBlock(s, 0), ScatteredExpertsBlock(s)), RmsNorm, positions=-1), ids, classes
        ),
        "written-row": Family(
            lambda s: Decoder(s, lambda s: nn.Sequential(MistralBlock(s, 0), WrittenRowBlock(s)), RmsNorm, positions=-1), ids, classes
        ),
        "albert": Family(OneBlock, ids, classes),
        "last-token": Family(lambda s: LastToken(Decoder(s, MistralBlock, RmsNorm, positions=-1), s), ids, classes),
        "bloom": Family(lambda s: Decoder(s, AlibiBlock, tied=True, positions=-1), ids, classes),
        "opt": Family(lambda s: Decoder(s, lambda s: AlibiBlock(s, F.relu, False), positions=2), ids, classes),
        "rezero": Family(lambda s: Decoder(s, ScaledBlock), ids, classes),
        "t5-encoder": Family(T5Encoder, padded_ids, classes),
        "roberta-classify": Family(lambda s: RobertaEncoder(s, "first", 5), padded_ids, classes),
        "roberta-regress": Family(lambda s: RobertaEncoder(s, "mean", 3), padded_ids, numbers, loss="mse"),
        "expanded-lookups": Family(ExpandedLookups, ids, classes),
        "vit": Family(Vit, lambda s: {"pixels": torch.randn(s.batch, s.length, 12)}, classes),
        "vit-patches": Family(PatchVit, lambda s: {"pixels": torch.randn(s.batch, 3, 4, 4 * s.length)}, classes),
        "speech": Family(Speech, lambda s: {"sound": torch.randn(s.batch, 6, 2 * s.length)}, classes),
    }  # fmt: skip
    try:
        import transformers  # noqa: F401

        from library_models import library_families
    except ImportError:
        return {**stock, **own}
    return {**stock, **own, **library_families()}
