"""Shows that each check fails on a planted violation, and passes without it."""

import subprocess
import tempfile
import unittest
from pathlib import Path

import check_commands
import check_directives
import check_docs
import check_layers
import check_operations
import check_pointers

HERE = Path(__file__).resolve().parent


class PlantedTree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def plant(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file


class CheckOperations(PlantedTree):
    def setUp(self):
        super().setUp()
        self.plant("core/plan/op.h", "  {Op::send, \"send\",\n   Work::communicate},\n  {Op::update, \"u\",\n   Work::compute},\n")

    def messages(self):
        return check_operations.check(self.root)

    def test_accepts_few_that_name_a_communication_and_any_that_name_a_computation(self):
        for i in range(12):
            self.plant(f"core/a{i}.cc", "f(Op::update);  // as before Op::send\n" + "f(Op::send);" * (i < 9))
        self.assertEqual(self.messages(), [])

    def test_counts_the_files_that_name_a_communication(self):
        for i in range(10):
            self.plant(f"runtime/a{i}.cc", "f(Op::send); g(Op::send);")
        (message,) = self.messages()
        self.assertIn("expected at most 10 files that name Op::send, got 11", message)

    def test_refuses_the_place_of_a_kind_as_its_meaning(self):
        for text in ["task.op <= Op::update", "kind >= Buffer::Kind::routed", "Op::send < op", "kind > Kind::saved"]:
            self.plant("core/a.cc", f"\nif ({text}) {{}}\n")
            self.assertEqual([m.split(" error: ")[0] for m in self.messages()], ["core/a.cc:2:"], text)
        self.plant("core/a.cc", "std::map<Op, int> a; b << Op::send; name<Buffer::Kind>(c);")
        self.assertEqual(self.messages(), [])

    def test_refuses_a_default_beside_operations(self):
        self.plant("core/a.cc", "switch (kind) { default: break; }\nswitch (op) { case Op::send: default: break; }")
        self.assertEqual(self.messages(), ["core/a.cc:2: error: a switch over operations has a default"])
class CheckDirectives(PlantedTree):
    def plant_users(self, count):
        self.plant("core/directives/directive.h", "std::variant<PlaceDirective,\n MoveDirective> what;")
        for i in range(count - 1):
            self.plant(f"core/lower/{i}.cc", "MoveDirective moved;")
        return check_directives.check(self.root)

    def test_takes_a_directive_that_few_files_name(self):
        self.assertEqual(self.plant_users(7), [])

    def test_refuses_one_that_many_files_name(self):
        self.assertIn("MoveDirective is named in 8 files, expected at most 7: core/directives/",
                      self.plant_users(8)[0])

    def test_refuses_a_registry_that_it_cannot_read(self):
        self.plant("core/directives/directive.h", "")
        self.assertEqual(len(check_directives.check(self.root)), 1)


class CheckLayers(PlantedTree):
    def messages(self, path, *headers):
        self.plant(path, "".join(f"#include {header}\n" for header in headers))
        return check_layers.check(self.root)

    def test_accepts_what_each_layer_may_include(self):
        for path, *headers in [
            ("core/ir/graph.cc", '"core/ir/graph.h"', "<vector>", "<tl/expected.hpp>"),
            ("core/plugin/load.cc", "<elf.h>", '"piper/plugin.h"'),
            ("plugins/zero/zero.cc", "<piper/plugin.hpp>", "<span>", '"stages.h"'),
            ("sdk/include/piper/plugin.h", "<stdint.h>", "<piper/status.h>"),
            ("runtime/exec/engine.cc", '"core/plan/plan.h"', "<torch/types.h>"),
        ]:
            self.assertEqual(self.messages(path, *headers), [])

    def test_names_file_and_line_of_an_include_that_crosses(self):
        self.assertEqual(self.messages("core/ir/graph.cc", "<vector>", "<torch/torch.h>"),
                         ["core/ir/graph.cc:2: error: this layer may not include 'torch/torch.h'"])

    def test_refuses_each_forbidden_direction(self):
        for path, header in [
            ("core/ir/a.cc", "<ATen/ATen.h>"),
            ("core/ir/b.cc", "<c10/core/Device.h>"),
            ("core/ir/c.cc", "<cuda_runtime.h>"),
            ("core/ir/d.cc", "<nccl.h>"),
            ("core/ir/e.cc", '"runtime/exec/engine.h"'),
            ("core/ir/f.cc", "<boost/dll.hpp>"),
            ("plugins/zero/a.cc", '"core/ir/graph.h"'),
            ("plugins/zero/b.cc", '"../../core/ir/graph.h"'),
            ("plugins/zero/c.cc", "<toml++/toml.h>"),
            ("sdk/include/piper/a.h", "<vector>"),
            ("sdk/include/piper/b.hpp", '"core/ir/graph.h"'),
            ("runtime/exec/a.cc", "<c10/cuda/CUDAStream.h>"),
            ("runtime/exec/b.cc", "<nccl.h>"),
            ("runtime/exec/c.cc", '"tests/support/golden.h"'),
        ]:
            before = len(check_layers.check(self.root))
            self.assertEqual(len(self.messages(path, header)), before + 1, f"{path}: {header}")

    def test_accepts_what_is_below_a_folder_at_any_depth(self):
        for path, *headers in [
            ("core/lower/a.cc", '"core/base/ids.h"', '"core/lower/dag.h"', '"core/cost/costs.h"'),
            ("core/directives/b.cc", '"core/directives/toml/read.h"'),
            ("core/pipeline.cc", '"core/lower/dag.h"'),
            ("core/cli/c.cc", '"core/pipeline.h"'),
            ("runtime/comm/local/d.cc", '"runtime/device/event.h"'),
            ("runtime/exec/e.cc", '"runtime/model/build.h"', '"core/simulate/simulate.h"'),
        ]:
            self.assertEqual(self.messages(path, *headers), [])

    def test_refuses_what_is_above_or_beside_a_folder(self):
        for path, header in [
            ("core/base/a.cc", '"core/config/config.h"'),
            ("core/plan/b.cc", '"core/verify/memory.h"'),
            ("core/verify/c.cc", '"core/lower/dag.h"'),
            ("core/show/d.cc", '"core/simulate/simulate.h"'),
            ("core/lower/e.cc", '"core/pipeline.h"'),
            ("runtime/model/f.cc", '"runtime/models/models.h"'),
            ("runtime/tasks/g.cc", '"runtime/exec/engine.h"'),
            ("runtime/data/h.cc", '"runtime/exec/engine.h"'),
        ]:
            before = len(check_layers.check(self.root))
            self.assertEqual(len(self.messages(path, header)), before + 1, f"{path}: {header}")

    def test_names_the_folders_of_an_include_that_goes_up(self):
        self.assertEqual(self.messages("core/ir/a.cc", "<vector>", '"core/plan/plan.h"'),
                         ["core/ir/a.cc:2: error: 'core/ir' may not include 'core/plan/plan.h': it is "
                          "not below it"])

    def test_asks_for_the_floor_of_a_new_folder(self):
        self.assertEqual(self.messages("core/new/a.cc", "<vector>"),
                         ["core/new/a.cc: error: no floor is given for 'core/new'"])

    def test_refuses_floors_that_go_round(self):
        floors = {"core/a": ["core/b"], "core/b": ["core/c"], "core/c": ["core/b"]}
        self.assertEqual(check_layers.check(self.root, floors),
                         ["check_layers.py: error: a circle of folders: core/b -> core/c -> core/b"])


class CheckNames(PlantedTree):
    def test_refuses_a_type_that_two_files_define(self):
        self.plant("core/a/report.h", "namespace piper {\nclass Report {\n};\nclass Known;\n}\n")
        self.assertEqual(check_layers.check_names(self.root), [])
        self.plant("runtime/b/known.h", "namespace piper {\nstruct Known final : Base {\n};\n}\n")
        self.plant("runtime/b/rank.h", "namespace piper {\nstruct Report {\n  int x;\n};\n}\n")
        self.assertEqual(check_layers.check_names(self.root),
                         ["runtime/b/rank.h: error: 'Report' is a type of core/a/report.h, too"])

    def test_accepts_names_in_unnamed_namespaces_and_of_nested_types(self):
        self.plant("core/a/memory.h", "class Memory {\n  class Row;\n};\n")
        self.plant("core/a/memory.cc", "class Memory::Row {\n};\n")
        self.plant("core/a/b.cc", "namespace {\n\nclass Memory {\n};\n\n}  // namespace\n")
        self.assertEqual(check_layers.check_names(self.root), [])


class CheckPointers(PlantedTree):
    def test_compares_the_list_with_the_sources(self):
        self.plant("docs/devices.md", "| `runtime/a.cc` | loop |\n| `runtime/gone.cc` | loop |\n")
        self.plant("runtime/a.cc", "x.const_data_ptr<float>();")
        self.plant("runtime/b.cc", "x.data_ptr();")
        self.plant("runtime/comm/c.cc", "x.data_ptr();")
        self.plant("runtime/d.cc", "x.add_(1);")
        self.assertEqual(check_pointers.check(self.root), [
            "runtime/b.cc: error: it reaches memory by its address: list it in docs/devices.md, with the reason",
            "docs/devices.md: error: 'runtime/gone.cc' reaches no memory by its address"])


class CheckFormat(PlantedTree):
    def run_check(self, text):
        self.plant(".clang-format", (HERE.parent.parent / ".clang-format").read_text())
        self.plant("core/a.cc", text)
        subprocess.run("git init -q && git add core", shell=True, check=True, cwd=self.root)
        return subprocess.run([HERE / "check_format.sh", self.root], capture_output=True).returncode

    def test_accepts_formatted_sources(self):
        self.assertIn(self.run_check("int* pointer = nullptr;\n"), (0, 77))

    def test_refuses_a_star_on_the_right(self):
        self.assertNotEqual(self.run_check("int *pointer = nullptr;\n"), 0)


class CheckDocs(PlantedTree):
    def setUp(self):
        super().setUp()
        self.plant("dev", "#!/bin/bash\n#   test   run every test\n")
        self.plant("CMakePresets.json", '{"configurePresets": [{"name": "dev"}]}')
        self.plant("examples/a.toml", "x = 1\n")
        program = self.plant("piper", """#!/bin/sh
case "$1" in
  train) echo "Usage: piper train job [--steps N]" ;;
  --help) echo "Subcommands: train" ;;
  *) exit 2 ;;
esac
""")
        program.chmod(0o755)
        self.program = str(program)

    def messages(self, text):
        self.plant("README.md", text)
        return check_docs.check(self.root, self.program)

    def assert_refused(self, text, message):
        found = self.messages(text)
        self.assertEqual(len(found), 1, found)
        self.assertIn(message, found[0])

    def test_accepts_a_true_page(self):
        self.assertEqual(self.messages("""# A title, here
[home](README.md#a-title-here) and [elsewhere](https://example.org)

```console
$ ./dev test -R core
$ cmake --workflow --preset dev
$ build/release/bin/piper train examples/a.toml --steps 3 --training.seed=1
step 1
```

```toml
# examples/a.toml
x = 1
```
"""), [])

    def test_refuses_a_link_that_leads_nowhere(self):
        self.assert_refused("[gone](docs/gone.md)\n", "README.md:1: error: the link leads nowhere")

    def test_refuses_an_unknown_heading(self):
        self.assert_refused("# Here\n[there](#there)\n", "no heading '#there'")

    def test_refuses_an_unknown_verb(self):
        self.assert_refused("Run `./dev fly`.\n", "no verb 'fly'")

    def test_refuses_an_unknown_preset(self):
        self.assert_refused("```console\n$ cmake --preset fast\n```\n", "no preset 'fast'")

    def test_refuses_an_unknown_command(self):
        self.assert_refused("```console\n$ piper fly a.toml\n```\n", "no command 'fly'")

    def test_refuses_an_unknown_option(self):
        self.assert_refused("```console\n$ piper train a.toml --step 3\n```\n", "no option '--step'")

    def test_refuses_an_example_that_is_not_there(self):
        self.assert_refused("```console\n$ piper train examples/b.toml\n```\n", "no such file")

    def test_refuses_broken_toml(self):
        self.assert_refused("```toml\nx =\n```\n", "not TOML")

    def test_refuses_toml_that_differs_from_its_file(self):
        self.assert_refused("```toml\n# examples/a.toml\nx = 2\n```\n", "differs from")


class CheckCommands(PlantedTree):
    SOURCE = '''
fail(error("data.json", "no JSON"));
loading.refuse("training.steps", "a path");
return refuse(
    "split.rows", "too many");
getenv("PIPER_CACHE");
std::cerr << "error: gone [cli.internal]\\n";
// "left.alone"
'''
    PAGE = """## Environment
| `PIPER_CACHE` | a folder |
| `OMP_NUM_THREADS`, `PATH` | read by others |
## Codes
| `data.json` | no `data.other` |
| `split.rows` | more |
| `cli.internal` | ours |
## More
| `not.looked_at` | |
"""

    def messages(self, source=SOURCE, page=PAGE):
        self.plant("core/config/schema.cc", 'key("training.steps", "a key")')
        self.plant("core/a.cc", source)
        self.plant("docs/commands.md", page)
        return check_commands.check(self.root)

    def test_accepts_a_page_that_has_all(self):
        self.assertEqual(self.messages(), [])

    def test_refuses_a_code_that_the_page_lacks(self):
        self.assertEqual(self.messages(self.SOURCE + 'warning("data.glob", "");'),
                         ["core/a.cc:9: error: code 'data.glob' is not in docs/commands.md"])

    def test_refuses_a_code_of_a_helper_and_one_that_is_a_key_too(self):
        found = self.messages(self.SOURCE + 'add(1, "ir.tag");\nerror("training.steps", "");')
        self.assertEqual(len(found), 2, found)

    def test_refuses_a_code_that_no_source_has(self):
        self.assertEqual(self.messages(page=self.PAGE.replace("## More", "| `data.gone` | x |\n## More")),
                         ["docs/commands.md: error: code 'data.gone' is in no source"])

    def test_refuses_a_variable_that_only_one_side_has(self):
        self.assertEqual(len(self.messages(self.SOURCE + 'getenv("PIPER_NEW");')), 1)
        self.assertEqual(len(self.messages(page=self.PAGE.replace("_CACHE", "_OLD"))), 2)


if __name__ == "__main__":
    unittest.main()
