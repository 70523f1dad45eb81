// [[directive]] tables: what they become, and what is said about mistakes in them.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "core/config/load.h"
#include "core/directives/annotate.h"
#include "core/directives/toml/keys.h"
#include "core/directives/toml/read.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

// A job of pp 2 and dp 2, dp innermost, and the given tables.
Expected<Proposal> read(const std::string& tables) {
  Config config = test::toy_config(2, 2, 2);
  const auto raw = parse_raw(tables, "job.toml");
  config.directives = raw.value().find("directive")->items;
  return read_directives(config);
}

std::string said(const std::string& tables) {
  const auto proposal = read(tables);
  if (!proposal) {
    return to_string(proposal.error());
  }
  std::string text;
  for (const Directive& directive : proposal->directives) {
    text += to_string(directive) + '\n';
  }
  return text;
}

// One table; its keys begin in line 2.
std::string one(const std::string& keys) {
  return said("[[directive]]\n" + keys);
}

TEST(DirectiveTable, SaysEveryDirectiveThatAPluginCan) {
  EXPECT_EQ(said(R"([[directive]]
op = "tag"
filter = { layer = [0, 2], EP = "-" }
name = "PP"
index = 3
[[directive]]
op = "tag"
filter = {}
name = "PART"
parts = 2
by = "bytes"
[[directive]]
op = "tag"
filter = {}
name = "CUT"
boundaries = [1, 3]
over = "EP"
[[directive]]
op = "split"
n = 4
[[directive]]
op = "split_backward"
filter = { layer = "0..3" }
[[directive]]
op = "place"
filter = { PP = 0, MB = "0..1" }
ranks = [0, 2]
[[directive]]
op = "place"
filter = { PP = 1 }
ranks = { pp = 1 }
[[directive]]
op = "shard"
filter = { EP = "*" }
family = "dp"
stream = "ep"
[[directive]]
op = "recompute"
filter = { layer = "*" }
)"),
            "tag {layer=[0, 2], EP=-} PP=3   # job, job.toml:1:1\n"
            "tag {} PART=0..1 over 'layer' by bytes   # job, job.toml:6:1\n"
            "tag {} CUT=0..2 over 'EP' by boundaries [1, 3]   # job, job.toml:12:1\n"
            "split {} dim=MB n=4   # job, job.toml:18:1\n"
            "split_backward {layer=0..3}   # job, job.toml:21:1\n"
            "place {PP=0, MB=0..1} ranks=[0, 2] stream=compute   # job, job.toml:24:1\n"
            "place {PP=1} ranks=[2, 3] stream=compute   # job, job.toml:28:1\n"
            "shard {EP=*} family=[[0, 1], [2, 3]] stream=ep   # job, job.toml:32:1\n"
            "recompute {layer=*}   # job, job.toml:37:1\n");
}

TEST(DirectiveTable, HasEveryOptionOfReplicate) {
  EXPECT_EQ(one(R"(op = "replicate"
filter = {}
family = [[0, 1], [2, 3]]
reduce_stream = "r"
gather_stream = "g"
shard_optimizer = true
shard_grads = true
shard_params = true
bucket_bytes = "25MiB"
prefetch = 2
keep_gathered = "step"
reduce = "step"
)"),
            "replicate {} family=[[0, 1], [2, 3]] reduce_stream=r gather_stream=g "
            "shard=optimizer+grads+params prefetch=2 keep_gathered=step reduce=step "
            "bucket_bytes=26214400   # job, job.toml:1:1\n");
}

TEST(DirectiveTable, OrdersByGroupsOrByAChainInTheNotationOfSchedules) {
  EXPECT_EQ(said(R"([[directive]]
op = "order"
groups = [[{ PP = 0, MB = 0, PASS = "F" }], [{ MB = 1, PASS = ["F", "B"] }, { MB = 0, PASS = "B" }]]
[[directive]]
op = "order"
ranks = [0, 1]
actions = "0F0 (0F1;3B0)OVERLAP_F_B 0I1 (3F1;0F2) 0W1"
[[directive]]
op = "order"
ranks = { pp = 1 }
actions = ["1F0 1BI0", "1BW0"]
)"),
            "order [{PP=0, MB=0, PASS=F}], [{MB=1, PASS=F, B}, {MB=0, PASS=B}]   # job, "
            "job.toml:1:1\n"
            "order_chain ranks=[0, 1] 0F0 0F1&1 3B0&1 0BI1 3F1&2 0F2&2 0BW1   # job, "
            "job.toml:4:1\n"
            "order_chain ranks=[2, 3] 1F0 1BI0 1BW0   # job, job.toml:8:1\n");
}

TEST(DirectiveTable, ReportsAllMistakesOfAllTablesWithTheNearestName) {
  EXPECT_EQ(said(R"([[directive]]
op = "plcae"
[[directive]]
filter = {}
[[directive]]
op = "place"
filter = { PP = 0 }
devices = [0]
[[directive]]
op = "split"
num_microbatches = 4
n = 0
)"),
            "job.toml:2:6: error: directive.op: expected a directive, got \"plcae\" (did you mean "
            "'place'?) [config.choice]\n"
            "job.toml:3:1: error: [[directive]]: expected the key 'op', got none "
            "[config.missing_key]\n"
            "job.toml:8:1: error: unknown key 'devices' in [[directive]] place (known: filter, "
            "ranks, stream) [config.unknown_key]\n"
            "job.toml:5:1: error: [[directive]] place: expected the key 'ranks', got none "
            "[config.missing_key]\n"
            "job.toml:11:1: error: unknown key 'num_microbatches' in [[directive]] split (known: "
            "filter, n, dim) [config.unknown_key]\n"
            "job.toml:12:5: error: split.n: expected an integer of at least 1, got 0 "
            "[config.range]");
}

struct Mistake {
  const char* keys;
  const char* message;
};

class DirectiveValue : public testing::TestWithParam<Mistake> {};

TEST_P(DirectiveValue, IsRefusedWhereItStands) {
  EXPECT_EQ(one(GetParam().keys), std::string("job.toml:") + GetParam().message);
}

const Mistake kMistakes[] = {
    {"op = \"split_backward\"\nfilter = 3",
     "3:10: error: split_backward.filter: expected a filter like { PP = 0 }, got 3 [config.type]"},
    {"op = \"split_backward\"\nfilter = { PP = -1 }",
     "3:17: error: split_backward.filter.PP: expected an index, a list of indices, a range like "
     "\"0..3\", \"*\" (present) or \"-\" (absent), got -1 [config.type]"},
    {"op = \"split_backward\"\nfilter = { PP = \"3..1\" }",
     "3:17: error: split_backward.filter.PP: expected an index, a list of indices, a range like "
     "\"0..3\", \"*\" (present) or \"-\" (absent), got \"3..1\" [config.type]"},
    {"op = \"split_backward\"\nfilter = { PASS = \"X\" }",
     "3:19: error: split_backward.filter.PASS: expected one of \"F\", \"B\", \"BI\", \"BW\", "
     "\"U\", got \"X\" [config.choice]"},
    {"op = \"place\"\nfilter = {}\nranks = [0, 4]",
     "4:9: error: job: place.ranks: expected ranks below the world size 4, got 4 "
     "[directive.ranks]"},
    {"op = \"place\"\nfilter = {}\nranks = [1, 1]",
     "4:9: error: job: place.ranks: rank 1 is there twice [directive.ranks]"},
    {"op = \"place\"\nfilter = {}\nranks = []",
     "4:9: error: place.ranks: expected a list of ranks, or mesh coordinates like { pp = 0 }, got "
     "an empty list [config.type]"},
    {"op = \"place\"\nfilter = {}\nranks = { tp = 0 }",
     "4:9: error: place.ranks: the mesh has no axis 'tp' (did you mean 'dp'?) "
     "[mesh.unknown_axis]"},
    {"op = \"place\"\nfilter = {}\nranks = { pp = 2 }",
     "4:9: error: place.ranks: expected a coordinate below 2 on mesh axis 'pp', got 2 "
     "[mesh.coordinate]"},
    {"op = \"shard\"\nfilter = {}\nfamily = [[0, 1], [2]]",
     "4:10: error: job: shard.family: expected groups of equal size, got one of 2 and one of 1 "
     "ranks [directive.family]"},
    {"op = \"shard\"\nfilter = {}\nfamily = [[0, 1], [1, 2]]",
     "4:10: error: job: shard.family: expected disjoint groups, got rank 1 in two "
     "[directive.family]"},
    {"op = \"shard\"\nfilter = {}\nfamily = \"ep\"",
     "4:10: error: shard.family: the mesh has no axis 'ep' (did you mean 'dp'?) "
     "[mesh.unknown_axis]"},
    {"op = \"replicate\"\nfilter = {}\nreduce = \"often\"",
     "4:10: error: replicate.reduce: expected one of \"chain\", \"step\", got \"often\" "
     "[config.choice]"},
    {"op = \"replicate\"\nfilter = {}\nbucket_bytes = \"lots\"",
     "4:16: error: replicate.bucket_bytes: expected a number of bytes above 0, or a text like "
     "\"25MiB\", got \"lots\" [config.type]"},
    {"op = \"replicate\"\nfilter = {}\nshard_params = 3",
     "4:16: error: replicate.shard_params: expected true or false, got 3 [config.type]"},
    {"op = \"tag\"\nfilter = {}\nname = \"PP\"",
     "1:1: error: [[directive]] tag: expected one of 'index', 'parts' and 'boundaries', got 0 "
     "[config.missing_key]"},
    {"op = \"tag\"\nfilter = {}\nname = \"PP\"\nparts = 2\nindex = 1",
     "1:1: error: [[directive]] tag: expected one of 'index', 'parts' and 'boundaries', got 2 "
     "[config.missing_key]"},
    {"op = \"order\"",
     "1:1: error: [[directive]] order: expected either 'groups', or 'ranks' and 'actions', got "
     "none [config.missing_key]"},
    {"op = \"order\"\nranks = [0, 1]\nactions = \"0F0 0X0\"",
     "4:11: error: order.actions: expected stage, pass (F, B, I, W) and micro-batch like 0F2, or a "
     "pair like (0F2;1B0)OVERLAP_F_B, got '0X0' [order.notation]"},
    {"op = \"order\"\nranks = [0, 1]\nactions = \"(0F0;0B0\"",
     "4:11: error: order.actions: expected stage, pass (F, B, I, W) and micro-batch like 0F2, or a "
     "pair like (0F2;1B0)OVERLAP_F_B, got '(0F0;0B0' [order.notation]"},
    {"op = \"order\"\ngroups = [{ PP = 0 }]",
     "3:10: error: order.groups: expected a list of groups, each a list of filters, got a list "
     "[config.type]"},
};

INSTANTIATE_TEST_SUITE_P(Directives, DirectiveValue, testing::ValuesIn(kMistakes));

TEST(DirectiveTable, ClaimsTheAxesOverWhichAPlaceDoesNotExtend) {
  const auto proposal = read(R"([[directive]]
op = "place"
filter = {}
ranks = { dp = 0 }
[[directive]]
op = "split"
n = 2
[[directive]]
op = "place"
filter = {}
ranks = [0, 1]
[[directive]]
op = "place"
filter = {}
ranks = [2, 3]
)");

  std::string claims;
  for (const Claim& claim : proposal->claims) {
    claims += std::to_string(static_cast<int>(claim.kind)) + claim.name + ' ' +
              to_string(claim.from.where) + '\n';
  }
  EXPECT_EQ(claims, "0dp job.toml:1:1\n1 job.toml:5:1\n0pp job.toml:8:1\n");
}

TEST(DirectiveTable, PointsAtItsFilterWhereThatSelectsNothing) {
  const auto proposal = read("[[directive]]\nop = \"place\"\nfilter = { layr = 0 }\nranks = [0]\n");

  const auto dag = annotate(test::toy_config(1, 1, 1), test::toy_model(), {proposal.value()});

  ASSERT_FALSE(dag);
  EXPECT_EQ(to_string(dag.error()),
            "job.toml:3:10: error: job: place {layr=0}: the model has no tag 'layr' (did you mean "
            "'layer'?) [directive.unknown_tag]");
}

TEST(DirectiveKeys, InTheDocumentationAreTheReaders) {
  std::stringstream page;
  page << std::ifstream(PIPER_SOURCE_DIR "/docs/directives.md").rdbuf();

  EXPECT_NE(page.str().find(directive_reference()), std::string::npos)
      << "expected in docs/directives.md:\n"
      << directive_reference();
}

}  // namespace
}  // namespace piper
