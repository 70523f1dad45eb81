// What the original Piper refuses when it loads a schedule, refused here, in [[directive]] tables.
// docs/directives.md lists what is no mistake here.
#include <gtest/gtest.h>

#include <string>

#include "core/directives/toml/read.h"
#include "core/pipeline.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

// Two stages on the ranks of pp 2 and dp 2; regions 0 to 5, PP=0 up to region 2.
constexpr const char* kStages = R"([[directive]]
op = "tag"
filter = { REGION = "0..2" }
name = "PP"
index = 0
[[directive]]
op = "tag"
filter = { REGION = "3..5" }
name = "PP"
index = 1
[[directive]]
op = "place"
filter = { PP = 0 }
ranks = [0, 1]
)";

struct Case {
  const char* what;
  const char* tables;  // from line 15 on
  const char* message;
};

void PrintTo(const Case& item, std::ostream* out) {
  *out << item.what;
}

class OriginalError : public testing::TestWithParam<Case> {};

TEST_P(OriginalError, IsRefusedWithItsPlace) {
  Config config = test::toy_config(2, 2, 2);
  const std::string text = std::string(kStages) + GetParam().tables;
  config.directives = parse_raw(text, "job.toml").value().find("directive")->items;
  const ModelGraph model = test::toy_model();

  const auto said = read_directives(config);
  const std::string told = !said ? to_string(said.error()) : [&] {
    const auto plans = plan(config, model, {*said});
    return plans ? std::string("accepted") : to_string(plans.error());
  }();

  EXPECT_EQ(told, GetParam().message);
}

#define AFTER_PLACE(text) \
  "[[directive]]\nop = \"place\"\nfilter = { PP = 1 }\nranks = [2, 3]\n[[directive]]\n" text

const Case kCases[] = {
    {"place_of_groups_of_differing_size",
     "[[directive]]\nop = \"place\"\nfilter = { REGION = \"3..4\" }\nranks = [2]\n"
     "[[directive]]\nop = \"place\"\nfilter = { REGION = 5 }\nranks = [3]\n",
     "job.toml:15:1: error: region 3 layer=2 PP=1 (toy.cc:13) is placed on 1 ranks and reads a "
     "value made on 2; expected groups of equal size [place.group_size]\n"
     "job.toml:11:1: note: the producer's place"},
    {"place_without_devices", "[[directive]]\nop = \"place\"\nfilter = { PP = 1 }\nranks = []\n",
     "job.toml:18:9: error: place.ranks: expected a list of ranks, or mesh coordinates like { pp = "
     "0 }, got an empty list [config.type]"},
    {"place_with_several_filters",
     "[[directive]]\nop = \"place\"\nfilters = [{ PP = 1 }]\nranks = [2]\n",
     "job.toml:17:1: error: unknown key 'filters' in [[directive]] place (did you mean 'filter'?) "
     "[config.unknown_key]\n"
     "job.toml:15:1: error: [[directive]] place: expected the key 'filter', got none "
     "[config.missing_key]"},
    {"place_with_the_streams_of_replicate",
     "[[directive]]\nop = \"place\"\nfilter = { PP = 1 }\nranks = [2, 3]\ngather_stream = \"g\"\n",
     "job.toml:19:1: error: unknown key 'gather_stream' in [[directive]] place (known: filter, "
     "ranks, stream) [config.unknown_key]"},
    {"place_on_another_stream",
     "[[directive]]\nop = \"place\"\nfilter = { PP = 1 }\nranks = [2, 3]\nstream = \"pp\"\n",
     "job.toml:15:1: error: job: place {PP=1}: expected stream 'compute' (one compute stream a "
     "rank), got 'pp' [place.stream]"},
    {"place_that_matches_nothing",
     AFTER_PLACE("op = \"place\"\nfilter = { PP = 7 }\nranks = [2, 3]\n"),
     "job.toml:21:10: error: job: place {PP=7} matches nothing [directive.no_match]"},
    {"replicate_with_the_stream_of_place",
     AFTER_PLACE("op = \"replicate\"\nfilter = { PP = 1 }\nstream = \"s\"\n"),
     "job.toml:22:1: error: unknown key 'stream' in [[directive]] replicate (known: filter, "
     "family, shard_optimizer, "
     "shard_grads, shard_params, bucket_bytes, reduce_stream, gather_stream, prefetch, "
     "keep_gathered, reduce) "
     "[config.unknown_key]"},
    {"replicate_that_matches_nothing", AFTER_PLACE("op = \"replicate\"\nfilter = { PP = 7 }\n"),
     "job.toml:21:10: error: job: replicate {PP=7} matches nothing [directive.no_match]"},
    {"replicate_of_what_is_placed_nowhere", "[[directive]]\nop = \"replicate\"\nfilter = {}\n",
     "job.toml:11:1: error: job: region 3 layer=2 PP=1 (toy.cc:13) is placed nowhere, but other "
     "regions are [place.missing]"},
    {"replicate_on_other_devices_than_the_place",
     AFTER_PLACE("op = \"replicate\"\nfilter = { PP = 1 }\nfamily = [[0, 1]]\n"),
     "job.toml:19:1: error: job: replicate {PP=1}: the groups do not partition the place of region "
     "3 layer=2 PP=1 (toy.cc:13) [replicate.family]\n"
     "job.toml:15:1: note: placed by job"},
    {"shard_on_other_devices_than_the_place",
     AFTER_PLACE("op = \"shard\"\nfilter = { PP = 1 }\nfamily = [[1, 2]]\n"),
     "job.toml:19:1: error: job: shard {PP=1}: the groups do not partition the place of region 3 "
     "layer=2 PP=1 (toy.cc:13) [shard.family]\n"
     "job.toml:15:1: note: placed by job"},
    {"shard_whose_neighbour_is_elsewhere",
     AFTER_PLACE("op = \"shard\"\nfilter = { REGION = 3 }\nfamily = [[2, 3]]\n"),
     "job.toml:19:1: error: job: shard: region 3 layer=2 PP=1 (toy.cc:13) exchanges a value with "
     "another place; expected experts between regions of their own place [shard.edge]"},
    {"split_of_a_part", AFTER_PLACE("op = \"split\"\nfilter = { PP = 0 }\nn = 2\n"),
     "job.toml:19:1: error: job: split: expected a filter that selects the whole model, got "
     "{PP=0}, which selects 3 of 6 regions [split.part]"},
    {"splits_that_disagree",
     AFTER_PLACE("op = \"split\"\nn = 2\n[[directive]]\nop = \"split\"\nn = 3\n"),
     "job.toml:22:1: error: job: split: expected the 2 micro-batches of job, got 3 [split.twice]\n"
     "job.toml:19:1: note: first split by job"},
    {"split_by_a_placeholder", AFTER_PLACE("op = \"split\"\nn = \"__MBS__\"\n"),
     "job.toml:21:5: error: split.n: expected an integer, got \"__MBS__\" [config.type]"},
    {"order_of_one_group", AFTER_PLACE("op = \"order\"\ngroups = [[{ PP = 0 }]]\n"),
     "job.toml:19:1: error: job: order: expected at least two groups of at least one filter, got 1 "
     "[order.groups]"},
    {"order_with_an_empty_group",
     AFTER_PLACE("op = \"order\"\ngroups = [[{ PP = 0 }], [{ MB = 1 }], []]\n"),
     "job.toml:19:1: error: job: order: expected at least two groups of at least one filter, got 3 "
     "with an empty one "
     "[order.groups]"},
    {"order_that_contradicts_the_data",
     AFTER_PLACE("op = \"order\"\ngroups = [[{ PP = 1, MB = 0, PASS = \"B\" }], [{ PP = 1, MB = "
                 "0, PASS = \"F\" }]]\n"),
     "job.toml:19:1: error: job: the orders and the data they need form a cycle of 2 tasks "
     "[order.cycle]\n"
     "note: 1F0@1 comes before 1B0@1: what it keeps for the backward\n"
     "job.toml:19:1: note: 1B0@1 comes before 1F0@1: order of job on ranks 2, 3, group 1 before "
     "group 2"},
    {"order_with_the_weights_before_the_inputs",
     AFTER_PLACE("op = \"split_backward\"\nfilter = {}\n[[directive]]\nop = \"order\"\n"
                 "ranks = [2, 3]\nactions = \"1W0 1I0\"\n"),
     "job.toml:22:1: error: job: the orders and the data they need form a cycle of 2 tasks "
     "[order.cycle]\n"
     "note: 1BI0@1 comes before 1BW0@1: what it keeps for the backward\n"
     "job.toml:22:1: note: 1BW0@1 comes before 1BI0@1: order_chain of job on ranks 2, 3, action 1 "
     "before action 2"},
    {"order_of_a_pass_that_is_none",
     AFTER_PLACE("op = \"order\"\ngroups = [[{ PASS = \"FB\" }], [{}]]\n"),
     "job.toml:21:21: error: order.groups.PASS: expected one of \"F\", \"B\", \"BI\", \"BW\", "
     "\"U\", got \"FB\" [config.choice]"},
    {"op_that_is_none", "[[directive]]\nop = \"move\"\n",
     "job.toml:16:6: error: directive.op: expected a directive, got \"move\" (known: tag, split, "
     "split_backward, place, replicate, shard, order, recompute) [config.choice]"},
};

INSTANTIATE_TEST_SUITE_P(Directives, OriginalError, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case>& item) {
                           return std::string(item.param.what);
                         });

}  // namespace
}  // namespace piper
