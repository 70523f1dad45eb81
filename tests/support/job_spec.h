// Jobs as small plain values: a model of layers (chains, branches, tied, frozen, experts), a mesh,
// and what a strategy says. Printed as text, sampled, and shrunk while they still fail.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/directives/directive.h"
#include "core/ir/model_graph.h"
#include "core/pipeline.h"

namespace piper::test {

struct LayerSpec {
  // Nodes: 0 is the embedding of the tokens, i + 1 is layer i. None: reads the model's second
  // input.
  std::vector<std::uint32_t> reads = {0};
  std::uint32_t stage = 0;
  std::uint32_t weights = 1;  // parameters of its own
  bool experts = false;       // they are experts
  bool frozen = false;
  bool tied = false;  // uses the embedding's weight, too
  bool dead = false;  // the head does not read it
};

struct PolicySpec {
  std::uint32_t zero = 0;
  std::uint64_t bucket_bytes = 0;
  Span keep_gathered = Span::chain, reduce = Span::chain;
  std::uint32_t prefetch = 1;
  std::uint32_t group = 0;      // ranks of a sharding group; 0: the whole place
  bool is_strided = false;      // groups of every so-many-th rank
  bool has_one_stream = false;  // gathers, reductions and experts share one
};

struct JobSpec {
  std::vector<LayerSpec> layers = {};
  std::uint32_t head_stage = 0;
  bool has_tied_head = false, has_frozen_embedding = false;
  std::uint32_t pp = 1, dp = 1, microbatches = 1;
  std::uint32_t extra_rows = 0;           // more than one a micro-batch and rank
  bool is_folded = false;                 // stages go back and forth over the places
  bool is_bidirectional = false;          // the second half of the micro-batches from the other end
  bool is_interleaved = false;            // rank = replica x pp + place
  std::vector<PolicySpec> policies = {};  // of stage s: number s modulo their number; none: core's
  std::uint32_t ep = 0;                   // ranks of an expert group; 0: experts are not sharded
  enum class Split : std::uint8_t { none, all, even } split_backward = Split::none;
  enum class Order : std::uint8_t {
    none,
    backward_first,  // a chain a place, 1F1B-like
    forward_first,   // a chain a place, GPipe-like
    by_microbatch,   // filters: forwards of each micro-batch after those before it
    by_pass,         // filters: all forwards before all backwards
    mixed,           // filters: an overlap group of micro-batch 0's backward and 1's forward
  } order = Order::none;
  bool has_overlap = false;  // actions of a chain two by two
  bool is_split_by_directive = false;
  bool is_analytical = false;
  enum class Recompute : std::uint8_t {
    none,
    full,  // every layer
    odd    // every second layer
  } recompute = Recompute::none;
};

// One line that has all of it.
std::string to_string(const JobSpec& spec);

struct SpecJob {
  Config config;
  ModelGraph model;
  Proposal proposal;
};
SpecJob make_job(const JobSpec& spec);
Expected<Plans> plan(const SpecJob& job);

// A job of any kind; the same for the same seed.
JobSpec sample_job(std::uint32_t seed);

// A smaller job that still fails: layers, ranks, micro-batches and options are taken away as long
// as `fails` holds.
JobSpec shrink(JobSpec spec, const std::function<bool(const JobSpec&)>& fails);

}  // namespace piper::test
