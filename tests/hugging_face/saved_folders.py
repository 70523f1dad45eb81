"""Folders that `piper train` saves are what transformers reads: saved_folders.py SOURCE PROGRAM.

Runs itself by the Python of .piper/transformers, which `./dev setup` fetches; without it, it fails.
Where that Python finds a PyTorch (or LibTorch's own can be imported), the models are run too.
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE, PROGRAM = (pathlib.Path(argument).absolute() for argument in sys.argv[1:3])
READER = SOURCE / ".piper/transformers/bin/python"
if "PIPER_READER" not in os.environ:
    if not READER.exists():
        sys.exit(f"{READER} is missing: run `./dev setup`, which fetches transformers")
    environment = {**os.environ, "PIPER_READER": "1", "TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1"}
    os.execve(READER, [str(READER), "-B", *sys.argv], environment)

sys.path.append(str((SOURCE / ".piper/libtorch").resolve().parent))
try:
    with contextlib.redirect_stderr(None):
        import torch
    NO_TORCH = None
except (ImportError, OSError) as reason:
    for name in [name for name in sys.modules if name.split(".")[0] == "torch"]:
        del sys.modules[name]
    sys.path.pop()
    NO_TORCH = str(reason)

import transformers
from safetensors.numpy import load_file
from tokenizers import Tokenizer, models, pre_tokenizers

ORACLES = SOURCE / "tests/data/oracles"
JOB = """
[model]
{model}
[training]
dataset = "jsonl"
dataset_path = "rows.jsonl"
seq_len = 24
global_batch_size = 5
steps = 2
dtype = "float64"
[validation]
fraction = 0
[optimizer]
name = "sgd"
lr = 0.01
[metrics]
file = "metrics.jsonl"
[checkpoint]
"""


def rows(oracle):
    batch = json.loads((ORACLES / oracle / "batch.json").read_text())
    return [dict(zip(batch, row)) for row in zip(*batch.values())]


class SavedFolders(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="piper_saved_")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def source(self, oracle="qwen3_dense", **fields):
        """A copy of the oracle's folder, as `hf`, with these fields in its config.json."""
        source = self.folder / "hf"
        source.mkdir()
        shutil.copy(ORACLES / oracle / "model.safetensors", source)
        config = json.loads((ORACLES / oracle / "config.json").read_text())
        config.update(fields)
        (source / "config.json").write_text(json.dumps(config))
        return source

    def train(self, *overrides, model='hf_assets_path = "hf"', load=True, save="saved", oracle="qwen3_dense", after_a_step=None):
        """Trains two steps and saves; the loss of the first. Calls `after_a_step` once there was one."""
        text = "".join(json.dumps(row) + "\n" for row in rows(oracle))
        (self.folder / "rows.jsonl").write_text(text)
        job = JOB.format(model=model)
        job += "initial_load_in_hf = true\n" if load else ""
        (self.folder / "job.toml").write_text(job)
        command = [PROGRAM, "train", "job.toml", "--no-progress", *overrides]
        if save:
            command.append(f"--checkpoint.last_save_path={save}")
        environment = {**os.environ, "PIPER_CACHE": str(self.folder / "cache")}
        metrics = self.folder / "metrics.jsonl"
        metrics.unlink(missing_ok=True)
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, cwd=self.folder, env=environment, **pipes) as running:
            while after_a_step and running.poll() is None:
                if metrics.exists() and "\n" in metrics.read_text():
                    after_a_step()
                    break
                time.sleep(0.01)
            errors = running.communicate()[1]
        self.assertEqual(running.returncode, 0, errors)
        return json.loads(metrics.read_text().splitlines()[0])["loss"]

    def read(self, folder="saved"):
        """The configuration, which has the sizes of the weights beside it."""
        config = transformers.AutoConfig.from_pretrained(self.folder / folder)
        weights = load_file(self.folder / folder / "model.safetensors")
        self.assertEqual(weights["model.embed_tokens.weight"].shape, (config.vocab_size, config.hidden_size))
        layers = {name.split(".")[2] for name in weights if name.startswith("model.layers.")}
        self.assertEqual(len(layers), config.num_hidden_layers)
        self.assertEqual(len(config.layer_types), config.num_hidden_layers)
        self.assertEqual("lm_head.weight" in weights, not config.tie_word_embeddings)
        q, k = (weights[f"model.layers.0.self_attn.{n}_proj.weight"].shape[0] for n in "qk")
        self.assertEqual(q, config.num_attention_heads * config.head_dim)
        self.assertEqual(k, config.num_key_value_heads * config.head_dim)
        self.assertEqual(weights["model.layers.0.mlp.up_proj.weight"].shape[0], config.intermediate_size)
        return config

    def differences(self, ours, theirs):
        """Keys that transformers reads another value of."""
        a, b = ours.to_dict(), theirs.to_dict()
        keys = {*a, *b} - {"_name_or_path"}
        return {key: (a.get(key), b.get(key)) for key in keys if a.get(key) != b.get(key)}

    def test_reads_what_it_would_read_of_the_folder_that_the_job_started_from(self):
        for oracle in ("qwen3_dense", "qwen3_tied"):
            with self.subTest(oracle):
                shutil.rmtree(self.folder / "hf", ignore_errors=True)
                source = self.source(oracle, eos_token_id=[7, 8])
                self.train(oracle=oracle)
                there = transformers.AutoConfig.from_pretrained(source)
                self.assertEqual(
                    self.differences(self.read(), there),
                    {"architectures": (["Qwen3ForCausalLM"], None), "dtype": ("float64", None)},
                )

    def test_reads_every_size_that_the_job_sets(self):
        model = "layers = 3\ndim = 32\nheads = 4\nkv_heads = 2\nhead_dim = 6\nffn = 40\nvocab = 300\n"
        model += "tied = true\nrope_theta = 5000\nnorm_eps = 1e-5"
        self.train(model=model, load=False)
        config = self.read()
        self.assertEqual(config.rope_parameters, {"rope_type": "default", "rope_theta": 5000.0})
        wanted = {
            "num_hidden_layers": 3,
            "hidden_size": 32,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 6,
            "intermediate_size": 40,
            "vocab_size": 300,
            "tie_word_embeddings": True,
            "rms_norm_eps": 1e-5,
            "max_position_embeddings": 24,
            "dtype": "float64",
            "architectures": ["Qwen3ForCausalLM"],
        }
        read = config.to_dict()
        self.assertEqual({key: read[key] for key in wanted}, wanted)

    def test_reads_the_job_s_sizes_and_type_and_not_the_folder_s(self):
        stale = {"rope_type": "default", "rope_theta": 1e6}
        self.source(dtype="bfloat16", torch_dtype="bfloat16", rope_parameters=stale, max_position_embeddings=8)
        self.train("--model.layers=1", "--training.dtype=float32", "--model.rope_theta=777")
        config = self.read()
        self.assertEqual(config.num_hidden_layers, 1)
        self.assertEqual(config.layer_types, ["full_attention"])
        self.assertEqual(str(config.dtype).removeprefix("torch."), "float32")
        self.assertEqual(config.rope_parameters["rope_theta"], 777)
        self.assertEqual(config.max_position_embeddings, 24)

    def test_does_not_read_a_list_that_is_longer_than_the_layers(self):
        # What makes the tests above mean something.
        folder = self.source(num_hidden_layers=1)
        with self.assertRaisesRegex(Exception, "layer.types"):
            transformers.AutoConfig.from_pretrained(folder)

    def test_does_not_read_a_folder_whose_config_is_on_its_way(self):
        # Between the old model and the new one there is no config.json.
        folder = self.source()
        (folder / "config.json").unlink()
        with self.assertRaises(Exception):
            transformers.AutoConfig.from_pretrained(folder)

    def test_reads_what_the_folder_said_when_the_job_started(self):
        source = self.source(eos_token_id=7)

        def change_it():
            (source / "config.json").write_text('{"model_type": "another", "eos_token_id": 8}')
            (source / "generation_config.json").write_text("{}")

        self.train("--training.steps=100", after_a_step=change_it)
        self.assertEqual(self.read().eos_token_id, 7)
        self.assertFalse((self.folder / "saved/generation_config.json").exists())

    def test_reads_no_quantization_where_none_is(self):
        self.source(quantization_config={"quant_method": "fp8", "weight_block_size": [128, 128]})
        self.train(load=False)
        self.assertFalse(hasattr(self.read(), "quantization_config"))

    def test_reads_the_tokenizer_and_how_to_generate(self):
        source = self.source()
        words = Tokenizer(models.WordLevel({"a": 0, "b": 1, "?": 2}, unk_token="?"))
        words.pre_tokenizer = pre_tokenizers.Whitespace()
        transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="?").save_pretrained(source)
        (source / "generation_config.json").write_text('{"top_k": 3, "temperature": 0.5, "do_sample": true}')
        self.train()
        tokenizer = transformers.AutoTokenizer.from_pretrained(self.folder / "saved")
        self.assertEqual(tokenizer("b a c")["input_ids"], [1, 0, 2])
        self.assertEqual(transformers.GenerationConfig.from_pretrained(self.folder / "saved").top_k, 3)

    def test_reads_a_folder_that_was_replaced_while_the_job_ran_from_it(self):
        source = self.source()
        self.train("--model.layers=2", save="hf")
        self.assertEqual(self.read("hf").num_hidden_layers, 2)
        self.assertEqual(sorted(file.name for file in source.iterdir()), ["config.json", "model.safetensors"])

    def test_computes_the_loss_that_training_goes_on_from(self):
        if NO_TORCH:
            self.skipTest(f"the models are not run: torch cannot be imported here ({NO_TORCH})")
        for oracle, model in (
            ("qwen3_dense", 'hf_assets_path = "hf"'),
            ("qwen3_tied", 'hf_assets_path = "hf"\nlayers = 2'),
            ("qwen3_dense", "dim = 32\nheads = 4\nkv_heads = 2\nrope_theta = 5000\nnorm_eps = 1e-3\nvocab = 300"),
        ):
            with self.subTest(model, oracle=oracle):
                shutil.rmtree(self.folder / "hf", ignore_errors=True)
                self.source(oracle)
                self.train(model=model, load="hf" in model, oracle=oracle)
                ours = self.train(model='hf_assets_path = "saved"', save="", oracle=oracle)
                theirs = self.loss_of(self.folder / "saved", rows(oracle))
                self.assertLess(abs(theirs - ours), 1e-6 * ours)

    def loss_of(self, folder, data):
        model = transformers.Qwen3ForCausalLM.from_pretrained(
            folder, dtype=torch.float64, attn_implementation="eager"
        )
        tokens = torch.tensor([row["tokens"] for row in data])
        labels = torch.tensor([row["labels"] for row in data])
        with torch.no_grad():
            logits = model(input_ids=tokens).logits
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100).item()


if __name__ == "__main__":
    print(f"transformers {transformers.__version__}", flush=True)
    unittest.main(argv=sys.argv[:1], verbosity=2)
