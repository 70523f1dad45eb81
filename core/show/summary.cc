#include "core/show/summary.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>

#include "core/base/bytes.h"
#include "core/base/table.h"
#include "core/plan/text.h"
#include "core/verify/rank_peaks.h"

namespace piper {
namespace {

std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) {
    text.insert(at - 3, ",");
  }
  return text;
}

// The tags of a program's regions: `PP=0 layer=0..3`.
std::string stages(const Plan& plan, const ModelGraph& model, std::uint32_t program) {
  std::map<TagId, std::vector<std::uint32_t>> indices;
  for (const Chunk& chunk : plan.chunks) {
    if (chunk.program != program) {
      continue;
    }
    for (const Tag& tag : chunk.tags) {
      indices[tag.name].push_back(tag.index);
    }
    for (const RegionId region : chunk.regions) {
      for (const Tag& tag : model.region(region).tags) {
        indices[tag.name].push_back(tag.index);
      }
    }
  }
  std::string text;
  for (auto& [tag, list] : indices) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    text += (text.empty() ? "" : " ") + tag_name(plan, model, tag) + '=' + ranges(list);
  }
  return text.empty() ? "-" : text;
}

std::string tasks(const Program& program) {
  std::string text;
  for (const Stream& stream : program.streams) {
    if (stream.tasks.count > 0) {
      text += (text.empty() ? "" : ", ") + stream.name + ' ' + std::to_string(stream.tasks.count);
    }
  }
  return text.empty() ? "-" : text;
}

// Floating-point operations of the forwards of a step on one rank, by program.
std::vector<std::int64_t> work(const Plan& plan) {
  std::vector<std::int64_t> flops(plan.programs.size(), 0);
  for (const Chunk& chunk : plan.chunks) {
    const auto ranks = static_cast<std::int64_t>(plan.programs[chunk.program].ranks.size());
    const std::size_t own =
        chunk.microbatches.empty() ? plan.microbatches : chunk.microbatches.size();
    const std::int64_t rows =
        plan.global_rows * static_cast<std::int64_t>(own) / (ranks * plan.microbatches);
    flops[chunk.program] += chunk.flops.at(rows);
  }
  return flops;
}

// `1.04`: of the mean.
std::string times(double value, double mean) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", mean > 0 ? value / mean : 1.0);
  return text;
}

}  // namespace

std::string ranges(const std::vector<std::uint32_t>& sorted) {
  std::string text;
  for (std::size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    end = begin + 1;
    while (end < sorted.size() && sorted[end] == sorted[end - 1] + 1) {
      ++end;
    }
    text += (text.empty() ? "" : ", ") + std::to_string(sorted[begin]);
    if (end - begin > 1) {
      text += (end - begin > 2 ? ".." : ", ") + std::to_string(sorted[end - 1]);
    }
  }
  return text;
}

std::string summary(const Plan& plan, const ModelGraph& model) {
  std::vector<std::vector<std::string>> rows{
      {"program", "ranks", "stages", "parameters", "work", "peak memory", "tasks of each stream"}};
  const std::vector<std::int64_t> flops = work(plan);
  const double mean = static_cast<double>(std::accumulate(flops.begin(), flops.end(), 0LL)) /
                      static_cast<double>(flops.size());
  std::size_t task_count = 0;
  for (std::uint32_t p = 0; p < plan.programs.size(); ++p) {
    const Program& program = plan.programs[p];
    std::int64_t elements = 0;
    for (const BucketId bucket : program.buckets) {
      const Bucket& own = plan.buckets[index(bucket)];
      elements += own.zero == 3 ? own.shard_elements() : own.elements;
    }
    task_count += program.tasks.size();
    rows.push_back({std::to_string(p), ranges(program.ranks), stages(plan, model, p),
                    grouped(elements), times(static_cast<double>(flops[p]), mean),
                    human_bytes(largest(rank_peaks(plan, model, p)).peak.bytes), tasks(program)});
  }
  return std::string(plan.kind == Plan::Kind::train ? "train" : "evaluate") + ": " +
         std::to_string(plan.world) + (plan.world == 1 ? " rank, " : " ranks, ") +
         std::to_string(plan.microbatches) +
         (plan.microbatches == 1 ? " micro-batch, " : " micro-batches, ") +
         std::to_string(plan.global_rows) + " rows a step, " + std::to_string(task_count) +
         " tasks, " + std::to_string(plan.communicators.size()) + " communicators\n" + table(rows);
}

}  // namespace piper
