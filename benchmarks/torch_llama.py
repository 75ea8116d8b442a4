"""The step of examples/llama in PyTorch: a peer of benchmarks/step.

    PYTHON torch_llama.py --config JSON --folder FOLDER --compute bfloat16 --compile

PYTHON has torch and numpy. The model computes what `forward` of
examples/llama/export.py computes, with PyTorch's fused attention, cross-entropy
and AdamW, as a PyTorch user writes it. The worker compiles and prints a line of
JSON, then reads a number of steps from each line of input, trains that many
steps from the initial values in FOLDER/params.npz on FOLDER/tokens.npy, and
prints seconds and losses.
"""

import argparse
import json
import math
import os
import pathlib
import resource
import shutil
import sys
import time
import types

import numpy as np
import torch
import torch.nn.functional as F


def rms_norm(x, gain):
    x32 = x.float()
    scale = torch.rsqrt(x32.square().mean(-1, keepdim=True) + 1e-5)
    return (x32 * scale * gain).to(x.dtype)


def rotary_angles(sequence, depth):
    frequency = 10000.0 ** (-torch.arange(0, depth, 2) / depth)
    angle = torch.arange(sequence)[:, None] * frequency[None, :]
    return angle.cos()[:, None, :], angle.sin()[:, None, :]


def rotary(x, angles):
    """Rotates the two halves of every head of x, [batch, sequence, heads, depth]."""
    cos, sin = (angle.to(x.dtype) for angle in angles)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


class Llama(torch.nn.Module):
    """The parameters of examples/llama, by the path of each in its tree."""

    def __init__(self, cfg, initial):
        super().__init__()
        self.cfg = cfg
        self.dtype = getattr(torch, cfg.compute)
        self.weights = torch.nn.ParameterDict({name: torch.nn.Parameter(torch.from_numpy(value.copy())) for name, value in initial.items()})
        self.angles = rotary_angles(cfg.sequence, cfg.width // cfg.heads)

    def layer(self, index, x):
        weight = lambda name: self.weights[f"layers_{index}_{name}"]
        dot = lambda x, name: x @ weight(name).to(x.dtype)
        batch, sequence, width = x.shape
        heads = (batch, sequence, self.cfg.heads, width // self.cfg.heads)
        y = rms_norm(x, weight("norm1"))
        q, k = (rotary(dot(y, name).view(heads), self.angles) for name in ("wq", "wk"))
        v = dot(y, "wv").view(heads)
        out = F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)), is_causal=True)
        x = x + dot(out.transpose(1, 2).reshape(x.shape), "wo")
        y = rms_norm(x, weight("norm2"))
        return x + dot(F.silu(dot(y, "w_gate")) * dot(y, "w_up"), "w_down")

    def forward(self, tokens):
        x = self.weights["embed"][tokens[:, :-1]].to(self.dtype)
        for index in range(self.cfg.layers):
            x = self.layer(index, x)
        x = rms_norm(x, self.weights["norm"])
        logits = (x @ self.weights["head"].to(x.dtype)).float()
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def learning_rate(cfg, step):
    """optax.warmup_cosine_decay_schedule, as a multiple of its peak."""
    if step < cfg.warmup_steps:
        return step / cfg.warmup_steps
    done = min(step - cfg.warmup_steps, cfg.schedule_steps - cfg.warmup_steps) / (cfg.schedule_steps - cfg.warmup_steps)
    return 0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * done))


class Trainer:
    def __init__(self, cfg, initial, compiled, device="cpu"):
        self.cfg, self.initial = cfg, initial
        self.model = Llama(cfg, initial).to(device)
        self.model.angles = tuple(angle.to(device) for angle in self.model.angles)
        self.loss = torch.compile(self.model) if compiled else self.model

    def restart(self):
        """Back to the initial values, with new moments."""
        with torch.no_grad():
            for name, value in self.initial.items():
                self.model.weights[name].copy_(torch.from_numpy(value))
        norms = [p for name, p in self.model.weights.items() if "norm" in name]
        matrices = [p for name, p in self.model.weights.items() if "norm" not in name]
        groups = [{"params": norms, "weight_decay": 0.0}, {"params": matrices, "weight_decay": self.cfg.weight_decay}]
        self.optimizer = torch.optim.AdamW(groups, lr=self.cfg.learning_rate, betas=(0.9, 0.95), eps=1e-8, fused=True)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: learning_rate(self.cfg, step))

    def step(self, tokens):
        self.optimizer.zero_grad()
        loss = self.loss(tokens)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.clip)
        self.optimizer.step()
        self.schedule.step()
        return float(loss.detach())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=json.loads, required=True, help="the fields of examples/llama's Config")
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--compute", required=True, choices=("float32", "bfloat16"))
    parser.add_argument("--compile", action="store_true", help="with torch.compile")
    args = parser.parse_args()
    # torch.compile looks for g++ unless CXX names a compiler.
    if not shutil.which("g++"):
        os.environ.setdefault("CXX", "clang++-22")
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    cfg = types.SimpleNamespace(**{**args.config, "compute": args.compute})
    tokens = torch.from_numpy(np.load(args.folder / "tokens.npy")).long()
    trainer = Trainer(cfg, dict(np.load(args.folder / "params.npz")), args.compile)
    trainer.restart()
    begin = time.perf_counter()
    trainer.step(tokens[0])
    first = time.perf_counter() - begin
    print(json.dumps({"compile_seconds": first if args.compile else None, "torch": torch.__version__}), flush=True)
    for line in sys.stdin:
        trainer.restart()
        seconds, cpu_seconds, losses = [], [], []
        for index in range(int(line)):
            begin, cpu = time.perf_counter(), time.process_time()
            losses.append(trainer.step(tokens[index % len(tokens)]))
            seconds.append(time.perf_counter() - begin)
            cpu_seconds.append(time.process_time() - cpu)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps({"seconds": seconds, "cpu_seconds": cpu_seconds, "losses": losses, "peak_rss": peak}), flush=True)


if __name__ == "__main__":
    main()
