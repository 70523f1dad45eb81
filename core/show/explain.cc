#include "core/show/explain.h"

#include <algorithm>
#include <charconv>

#include "core/ir/text_reader.h"
#include "core/lower/edge_values.h"
#include "core/plan/node_name.h"
#include "core/plan/text.h"
#include "core/show/wait_reason.h"

namespace piper {
namespace {

struct Found {
  std::uint32_t program = 0;
  TaskId task{};
};

std::string without_spaces(std::string_view text) {
  std::string out;
  std::copy_if(text.begin(), text.end(), std::back_inserter(out), [](char c) { return c != ' '; });
  return out;
}

std::optional<NodeId> number_of(std::string_view text) {
  text.remove_prefix(text.starts_with('n') ? 1 : 0);
  std::uint32_t id = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), id);
  const bool whole = problem == std::errc() && end == text.data() + text.size() && !text.empty();
  return whole ? std::optional(NodeId{id}) : std::nullopt;
}

template <typename F>
void for_each_task(const Plan& plan, F&& f) {
  for (std::uint32_t p = 0; p < plan.programs.size(); ++p) {
    for (std::uint32_t t = 0; t < plan.programs[p].tasks.size(); ++t) {
      f(Found{p, TaskId{t}}, plan.programs[p].tasks[t]);
    }
  }
}

Expected<Found> find(const Plan& plan, const NodeNames& names, const std::string& node) {
  const std::optional<NodeId> number = number_of(node);
  const std::string wanted = without_spaces(node);
  std::vector<Found> found;
  std::vector<std::string> known, meant;
  for_each_task(plan, [&](Found at, const Task& task) {
    std::string name = names.of(plan, at.program, task);
    const std::string plain = without_spaces(name);
    if (number ? task.node == *number
               : plain == wanted || plain.substr(0, plain.rfind('@')) == wanted) {
      found.push_back(at);
      meant.push_back(name);
    }
    const auto apart =
        static_cast<std::int64_t>(plain.size()) - static_cast<std::int64_t>(wanted.size());
    if (apart >= -1 && apart <= 1 && !number) {
      known.push_back(std::move(name));
    }
  });
  if (found.size() == 1) {
    return found.front();
  }
  if (found.empty()) {
    std::size_t nodes = 0;
    for_each_task(plan, [&](Found, const Task&) { ++nodes; });
    const std::string near = nearest(node, known);
    return fail(error(
        "show.unknown_node",
        "--explain: the plan has no node '" + node + "'" +
            (!near.empty()
                 ? " (did you mean '" + near + "'?)"
                 : " (nodes have names like '" + names.of(plan, 0, plan.programs[0].tasks[0]) +
                       "' and numbers from 0 to " + std::to_string(nodes - 1) + ")")));
  }
  std::string all;
  for (std::size_t i = 0; i < meant.size() && i < 8; ++i) {
    all += (i == 0 ? "'" : ", '") + meant[i] + "'";
  }
  return fail(error("show.ambiguous_node", "--explain: '" + node + "' is the name of " +
                                               std::to_string(meant.size()) + " nodes: " + all +
                                               (meant.size() > 8 ? ", ..." : "")));
}

std::string listed(const std::vector<std::uint32_t>& numbers) {
  std::string text;
  for (const std::uint32_t number : numbers) {
    text += (text.empty() ? "" : ", ") + std::to_string(number);
  }
  return text;
}

std::string bytes_text(Affine bytes) {
  std::string text;
  append_affine(text, bytes);
  return text + " bytes";
}

class Explainer {
 public:
  Explainer(const Plan& plan, const PlanHistory& history, const NodeNames& names, Found at)
      : plan_(plan),
        history_(history),
        model_(history.annotated().model),
        names_(names),
        edge_values_(history.dag(), model_),
        p_(at.program),
        program_(plan.programs[at.program]),
        id_(at.task),
        task_(program_.task(at.task)) {}

  std::string run() {
    head();
    origins();
    regions();
    position();
    needs();
    waits();
    waited_for();
    buffers();
    return std::move(text_);
  }

 private:
  // `label` once, then further lines under each other.
  void line(std::string_view label, const std::string& what) {
    constexpr std::size_t kColumn = 16;
    const bool again = label == last_label_;
    text_ += again ? std::string(kColumn, ' ')
                   : "  " + std::string(label) + std::string(kColumn - 2 - label.size(), ' ');
    text_ += what + '\n';
    last_label_ = label;
  }

  std::string name(const Task& task) const { return names_.of(plan_, p_, task); }
  std::string name(TaskId task) const { return name(program_.task(task)); }

  static std::string from(const Provenance& origin) {
    return origin.plugin + (origin.name.empty() ? "" : " '" + origin.name + "'") +
           (origin.where.known() ? " (" + to_string(origin.where) + ")" : "");
  }

  std::string from(std::uint32_t origin) const {
    const std::vector<Provenance>& origins = history_.annotated().origins;
    return origin < origins.size() ? from(origins[origin]) : "core";
  }

  void head() {
    text_ = name(task_) + " is node " + std::to_string(index(task_.node)) + " of the " +
            (plan_.kind == Plan::Kind::train ? "train" : "evaluate") + " plan: ";
    text_ += to_string(task_.op);
    if (valid(task_.chunk)) {
      text_ += " of " + tags_of(plan_, model_, task_.chunk);
    }
    if (has_microbatch(task_.op)) {
      text_ += ", micro-batch " + std::to_string(task_.microbatch);
    }
    text_ += '\n';
    line("runs on", (program_.ranks.size() == 1 ? "rank " : "ranks ") + listed(program_.ranks) +
                        " (program " + std::to_string(p_) + ")");
  }

  void origins() {
    const std::uint32_t origin = index(task_.node) < plan_.origin_of_node.size()
                                     ? plan_.origin_of_node[index(task_.node)]
                                     : 0;
    line("made by", std::string(traits(task_.op).directive) + " of " + from(origin) +
                        (is_point_to_point(task_.op) ? ", where a value leaves its place" : ""));
    if (valid(task_.chunk) && runs_chunk(task_.op)) {
      const RegionId region = plan_.chunks[index(task_.chunk)].regions.front();
      const Annotated& annotated = history_.annotated();
      if (task_.op == Op::backward_input || task_.op == Op::backward_weight) {
        line("made by", "split_backward of " +
                            from(annotated.columns.of<BackwardSplit>(region).origin) +
                            ", which makes BI and BW of B");
      }
      if (task_.op == Op::recompute) {
        const std::uint32_t asked = annotated.columns.of<Recomputed>(region).origin;
        line("made by",
             (asked == 0 ? "[activation_checkpoint] of the job" : "recompute of " + from(asked)) +
                 ": its forward keeps nothing");
      }
      for (const Tag& tag : plan_.chunks[index(task_.chunk)].tags) {
        if (const auto given = annotated.tag_origin.find({region, tag.name});
            given != annotated.tag_origin.end()) {
          line("made by", "tag " + tag_name(plan_, model_, tag.name) + '=' +
                              std::to_string(tag.index) + " is given by " + from(given->second));
        }
      }
      if (const std::uint32_t r = annotated.replication[index(region)]; r != Annotated::kNothing) {
        line("made by",
             "its parameters are replicated by " + from(annotated.replications[r].origin));
      }
      if (const std::uint32_t s = annotated.sharding[index(region)]; s != Annotated::kNothing) {
        line("made by", "its experts are sharded by " + from(annotated.shardings[s].origin));
      }
    }
  }

  void regions() {
    constexpr std::size_t kMost = 8;
    if (valid(task_.chunk)) {
      const std::vector<RegionId>& regions = plan_.chunks[index(task_.chunk)].regions;
      for (std::size_t i = 0; i < regions.size() && i < kMost; ++i) {
        line("model", describe(model_, regions[i]));
      }
      if (regions.size() > kMost) {
        line("model", "and " + std::to_string(regions.size() - kMost) + " regions more");
      }
    }
    if (valid(task_.value)) {
      const Value& value = model_.value(task_.value);
      line("model", "%" + std::to_string(index(task_.value)) +
                        (value.is_input() ? ", input '" + value.name + "'"
                                          : ", made by " + describe(model_, value.producer)));
    }
    if (valid(task_.bucket)) {
      const Bucket& bucket = plan_.buckets[index(task_.bucket)];
      line("model", "bucket " + std::to_string(index(task_.bucket)) + ": " +
                        std::to_string(bucket.parameters.size()) +
                        (bucket.parameters.size() == 1 ? " parameter, '" : " parameters from '") +
                        model_.parameter(bucket.parameters.front()).name +
                        (bucket.parameters.size() == 1 ? "', " : "' on, ") +
                        std::to_string(bucket.elements) + " elements" +
                        (bucket.tied ? ", tied" : ""));
    }
  }

  void position() {
    const Stream& stream = program_.streams[index(task_.stream)];
    const std::uint32_t at = index(id_) - stream.tasks.begin;
    line("stream",
         stream.name + ", task " + std::to_string(at + 1) + " of " +
             std::to_string(stream.tasks.count) +
             (at > 0 ? ", after " + name(TaskId{index(id_) - 1}) : ", first") +
             (at + 1 < stream.tasks.count ? ", before " + name(TaskId{index(id_) + 1}) : ", last"));
    if (valid(task_.communicator)) {
      const Communicator& communicator = plan_.communicators[index(task_.communicator)];
      const bool is_pair = communicator.kind == Communicator::Kind::point_to_point;
      line("stream", "communicator " + std::to_string(index(task_.communicator)) + " '" +
                         communicator.stream + "'" +
                         (is_pair ? "" : " of ranks " + listed(communicator.ranks)) +
                         (task_.bytes == Affine{} ? "" : ", " + bytes_text(task_.bytes)));
    }
    if (task_.overlap != 0) {
      line("stream", "overlap group " + std::to_string(task_.overlap) +
                         ": interleaved with its other members by the cost model");
    }
    if (runs_chunk(task_.op)) {
      order();
    }
  }

  // The chain that names this computation, if one does.
  void order() {
    const Annotated& annotated = history_.annotated();
    const Pass pass = task_.op == Op::forward           ? Pass::forward
                      : task_.op == Op::backward        ? Pass::backward
                      : task_.op == Op::backward_weight ? Pass::backward_weight
                                                        : Pass::backward_input;  // recompute too
    const auto names = [&](const Action& action) {  // B names both halves of it
      return action.pass == pass || (action.pass == Pass::backward && pass != Pass::forward);
    };
    for (const Annotated::Chain& chain : annotated.chains) {
      for (std::size_t i = 0; i < chain.actions.size(); ++i) {
        const Action& action = chain.actions[i];
        if (chain.ranks.ranks == program_.ranks && action.microbatch == task_.microbatch &&
            names(action) && std::to_string(action.stage) == stage()) {
          line("order", "order_chain of " + from(chain.origin) + ", action " +
                            std::to_string(i + 1) + " of " + std::to_string(chain.actions.size()));
          return;
        }
      }
    }
    line("order", annotated.orders.empty()
                      ? "no directive orders it: critical path first, by the job's cost model"
                      : "by order directives where they say so, else critical path first");
  }

  std::string stage() const {
    const std::string& stage = names_.stage(task_.chunk);
    return stage.substr(0, stage.find('.'));
  }

  // Its predecessors in the DAG, with what each edge carries.
  void needs() {
    const Dag& dag = history_.dag();
    std::vector<NodeId> seen;
    for (const Edge& edge : dag.edges) {
      if (edge.to != task_.node || std::find(seen.begin(), seen.end(), edge.from) != seen.end()) {
        continue;
      }
      seen.push_back(edge.from);
      line("needs", describe(dag, model_, edge.from) + ": " + what_edge(edge));
    }
    if (valid(task_.peer)) {
      line("needs", describe(dag, model_, task_.peer) + ": the other end of the message");
    }
  }

  std::string what_edge(const Edge& edge) const {
    std::string text;
    for (const Content& item : edge_values_.of(edge)) {
      text += (text.empty() ? "" : ", ") + edge_label(item);
    }
    if (!text.empty()) {
      return text;
    }
    return temporal_reason(task_.op, "order");
  }

  void waits() {
    for (const Wait& wait : program_.waits_of(task_)) {
      line("waits for", name(wait.task) + (wait.previous ? " of the step before: " : ": ") +
                            wait_reason(plan_, program_, history_.dag(), edge_values_, id_, wait));
    }
    if (task_.waits.count == 0) {
      line("waits for", "nothing but the task before it on its stream");
    }
  }

  void waited_for() {
    for (std::uint32_t t = 0; t < program_.tasks.size(); ++t) {
      for (const Wait& wait : program_.waits_of(program_.tasks[t])) {
        if (wait.task == id_) {
          line("waited for by",
               name(TaskId{t}) + (wait.previous ? " of the next step: " : ": ") +
                   wait_reason(plan_, program_, history_.dag(), edge_values_, TaskId{t}, wait));
        }
      }
    }
  }

  void buffers() {
    for (const BufferId buffer : program_.reads_of(task_)) {
      line("reads", described(buffer));
    }
    for (const BufferId buffer : program_.writes_of(task_)) {
      line("writes",
           described(buffer) + (program_.buffer(buffer).alloc == id_ ? ", allocated here" : ""));
    }
    for (const BufferId buffer : program_.frees_of(task_)) {
      line("frees", described(buffer));
    }
  }

  std::string described(BufferId id) const {
    const Buffer& buffer = program_.buffer(id);
    return buffer_text(buffer) + ", " + bytes_text(buffer.bytes) +
           (buffer.in_arena() ? " at " + std::to_string(buffer.offset) + " of the arena" : "");
  }

  const Plan& plan_;
  const PlanHistory& history_;
  const ModelGraph& model_;
  const NodeNames& names_;
  EdgeValues edge_values_;
  std::uint32_t p_;
  const Program& program_;
  TaskId id_;
  const Task& task_;
  std::string text_, last_label_;
};

}  // namespace

void PlanHistory::see(const Phase& phase) {
  if (const auto* annotated = std::get_if<const Annotated*>(&phase.value)) {
    annotated_ = **annotated;
  } else if (const auto* dag = std::get_if<const Dag*>(&phase.value)) {
    if ((*dag)->kind == kind_) {
      dag_ = **dag;
    }
  }
}

Expected<std::string> explain(const Plan& plan, const PlanHistory& history,
                              const std::string& node) {
  PIPER_CHECK(history.complete(), "a plan without its history");
  const NodeNames names(plan, history.annotated().model);
  PIPER_ASSIGN(const Found at, find(plan, names, node));
  return Explainer(plan, history, names, at).run();
}

}  // namespace piper
