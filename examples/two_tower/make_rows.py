#!/usr/bin/env python3
"""Writes rows.jsonl: a class that neither the tokens nor the features give alone."""
import json
import pathlib
import random

draw = random.Random(0)
with open(pathlib.Path(__file__).with_name("rows.jsonl"), "w", encoding="ascii") as file:
    for _ in range(512):
        tokens = [draw.randrange(16) for _ in range(8)]
        features = [round(draw.uniform(-1, 1), 3) for _ in range(4)]
        low = sum(token < 8 for token in tokens) > 4
        label = 2 * low + (features[0] + features[1] > 0)
        print(json.dumps({"tokens": tokens, "features": features, "labels": [label]}), file=file)
