"""Text files to rows of tokens and labels: python3 tokenise.py TOKENIZER SEQ_LEN FILE... >rows.jsonl"""
import json
import sys

from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
seq_len = int(sys.argv[2])
stream = []
for file in sys.argv[3:]:
    with open(file, encoding="utf-8") as text:
        stream += tokenizer(text.read(), add_special_tokens=False)["input_ids"]
    stream.append(tokenizer.eos_token_id)  # the end of the document
for start in range(0, len(stream) - 1, seq_len):
    tokens, labels = stream[start : start + seq_len], stream[start + 1 : start + 1 + seq_len]
    tokens += [tokenizer.eos_token_id] * (seq_len - len(tokens))
    labels += [-100] * (seq_len - len(labels))  # of the last row: not counted
    print(json.dumps({"tokens": tokens, "labels": labels}))
