"""Trains the model of lm.py in a pipeline of two PyTorch processes; prints the seconds of each of N steps after two.

    pipelines.py SCHEDULE N

A step is as long as its slower rank takes, optimizer included; one thread a rank; loopback through gloo.
"""

import os
import socket
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import multiprocessing, nn
from torch.distributed import pipelining
from torch.nn import functional as F

from lm import BYTES, LAYERS, LENGTH, PARTS, ROWS_EACH, Model

RANKS = 2
# By name: the class, stages a rank, and whether stages come back up the ranks.
SCHEDULES = {
    "gpipe": (pipelining.ScheduleGPipe, 1, False),
    "1f1b": (pipelining.Schedule1F1B, 1, False),
    "interleaved": (pipelining.ScheduleInterleaved1F1B, 2, False),
    "interleaved_zb": (pipelining.ScheduleInterleavedZeroBubble, 2, False),
    "zbv": (pipelining.ScheduleZBVZeroBubble, 2, True),
    "dualpipev": (pipelining.schedules.ScheduleDualPipeV, 2, True),
}


class Part(nn.Module):
    """One of several runs of layers; the first embeds, the last predicts."""

    def __init__(self, which, count):
        super().__init__()
        whole = Model()
        each = LAYERS // count
        self.embed = whole.embed if which == 0 else None
        self.layers = whole.layers[which * each : (which + 1) * each]
        last = which == count - 1
        self.norm, self.head = (whole.norm, whole.head) if last else (None, None)
        self.register_buffer("cos", whole.cos)
        self.register_buffer("sin", whole.sin)

    def forward(self, x):
        if self.embed is not None:
            x = self.embed(x)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        return x if self.head is None else self.head(self.norm(x))


class Stage(pipelining.PipelineStage):
    """PyTorch before 2.15 opens a connection of a rank to itself where it has two neighbouring stages: gloo has none."""

    def _get_init_p2p_neighbors_ops(self):
        return [op for op in super()._get_init_p2p_neighbors_ops() if op.peer != dist.get_rank()]


def loss(scores, labels):
    return F.cross_entropy(scores.flatten(0, 1), labels.flatten())


def work(rank, port, name, steps):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group(
        "gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=RANKS, timeout=timedelta(seconds=60)
    )
    kind, each, back = SCHEDULES[name]
    count = RANKS * each
    own = [rank] if each == 1 else [rank, count - 1 - rank if back else rank + RANKS]
    parts = [Part(i, count) for i in own]
    stages = [Stage(part, i, count, torch.device("cpu")) for part, i in zip(parts, own)]
    schedule = kind(stages[0] if each == 1 else stages, PARTS, loss_fn=loss)
    optimizer = torch.optim.SGD([p for part in parts for p in part.parameters()], lr=0.1)
    tokens, labels = torch.randint(BYTES, (2, PARTS * ROWS_EACH, LENGTH))
    arguments = (tokens,) if 0 in own else ()
    options = {"target": labels, "losses": []} if count - 1 in own else {}
    for step in range(2 + steps):
        dist.barrier()
        start = time.monotonic()
        optimizer.zero_grad(set_to_none=True)
        schedule.step(*arguments, **options, return_outputs=False)
        optimizer.step()
        seconds = torch.tensor(time.monotonic() - start, dtype=torch.float64)
        dist.all_reduce(seconds, dist.ReduceOp.MAX)
        if rank == 0 and step > 1:
            print(seconds.item(), flush=True)
    dist.destroy_process_group()


def main():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    multiprocessing.spawn(work, (port, sys.argv[1], int(sys.argv[2])), nprocs=RANKS)


if __name__ == "__main__":
    main()
