"""Trains the model of bench/runtime.cc in PyTorch on one thread; prints the seconds of each of N steps after a first.

    lm.py N
"""

import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

LAYERS, WIDTH, HEADS, INNER, LENGTH, BYTES = 8, 256, 4, 688, 256, 256
PARTS, ROWS_EACH = 8, 2


class Layer(nn.Module):
    """Attention with rotary positions, then a gated feed-forward; RMS norms before both."""

    def __init__(self):
        super().__init__()
        self.before_attention = nn.RMSNorm(WIDTH, eps=1e-6)
        self.before_inner = nn.RMSNorm(WIDTH, eps=1e-6)
        self.project = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.merge = nn.Linear(WIDTH, WIDTH, bias=False)
        self.widen = nn.Linear(WIDTH, 2 * INNER, bias=False)
        self.narrow = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x, cos, sin):
        rows = x.shape[0]
        heads = self.project(self.before_attention(x)).view(rows, LENGTH, 3, HEADS, -1)
        q, k, v = heads.permute(2, 0, 3, 1, 4)

        def turn(t):
            left, right = t.chunk(2, -1)
            return t * cos + torch.cat((-right, left), -1) * sin

        mixed = F.scaled_dot_product_attention(turn(q), turn(k), v, is_causal=True)
        x = x + self.merge(mixed.transpose(1, 2).reshape(rows, LENGTH, WIDTH))
        gate, up = self.widen(self.before_inner(x)).chunk(2, -1)
        return x + self.narrow(F.silu(gate) * up)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(BYTES, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(WIDTH, eps=1e-6)
        self.head = nn.Linear(WIDTH, BYTES, bias=False)
        size = WIDTH // HEADS
        angles = torch.outer(torch.arange(LENGTH), 10000.0 ** (-torch.arange(0, size, 2) / size))
        self.register_buffer("cos", torch.cat((angles, angles), -1).cos())
        self.register_buffer("sin", torch.cat((angles, angles), -1).sin())

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        return self.head(self.norm(x))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    tokens, labels = torch.randint(BYTES, (2, PARTS * ROWS_EACH, LENGTH))
    for step in range(int(sys.argv[1]) + 1):
        start = time.monotonic()
        optimizer.zero_grad(set_to_none=True)
        for x, y in zip(tokens.chunk(PARTS), labels.chunk(PARTS)):
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="sum")
            (loss / labels.numel()).backward()
        optimizer.step()
        if step > 0:
            print(time.monotonic() - start, flush=True)


if __name__ == "__main__":
    main()
