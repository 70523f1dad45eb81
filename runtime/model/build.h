// How a model is written: ordinary C++ that declares inputs and parameters and runs regions.
//
//     void build(Build& b) {
//       Tensor tokens = b.input("tokens", {seq}, at::kLong);
//       ParameterHandle w = b.parameter("embed.weight", {vocab, dim}, Init::normal(0.02));
//       Tensor h = b.region({tokens}, [=](const Tensors& in) {
//         return Tensors{at::embedding(w, in[0])};
//       })[0];
//       for (...) {
//         auto scope = b.annotate("layer");  // its regions carry the tag layer = 0, 1, ...
//         h = b.region({h}, ...)[0];
//       }
//     }
//
// The function of a region is called again and again, by every rank on its own thread with its own
// parameters, on any number of rows: it must read sizes from its inputs and keep no state. Values
// between regions are on the meta device.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/config/config.h"
#include "core/ir/model_graph.h"

namespace piper {

using Tensors = std::vector<at::Tensor>;
using RegionFunction = std::function<Tensors(const Tensors&)>;

// How a parameter starts; values are a function of (seed, name, element) alone, so layout never
// changes them.
struct Init {
  enum class Kind : std::uint8_t { normal, constant } kind = Kind::normal;
  double value = 0.02;  // standard deviation, or the constant
  static Init normal(double deviation) { return {Kind::normal, deviation}; }
  static Init constant(double value) { return {Kind::constant, value}; }
};

// A handle; copies share the tensor. The runtime puts the tensor in before a region runs.
class ParameterHandle {
 public:
  explicit ParameterHandle(std::shared_ptr<at::Tensor> slot) : slot_(std::move(slot)) {}
  operator const at::Tensor&() const { return *slot_; }
  const at::Tensor& operator*() const { return *slot_; }

 private:
  std::shared_ptr<at::Tensor> slot_;
};

// A rank's own copy of the model: the graph, and for each region and parameter what runs and holds
// it.
struct LiveModel {
  ModelGraph graph;
  std::vector<RegionFunction> regions;  // by RegionId
  std::vector<std::shared_ptr<at::Tensor>>
      parameters;           // by ParameterId; the handles see what is put here
  std::vector<Init> inits;  // by ParameterId
};

class Build {
 public:
  virtual ~Build() = default;

  // An input that the data loader delivers under this name: [rows, shape...]. "labels" are int64,
  // kIgnoredLabel (-100) = not counted.
  virtual at::Tensor input(const std::string& name, const std::vector<std::int64_t>& shape,
                           at::ScalarType dtype) = 0;
  virtual ParameterHandle parameter(
      const std::string& name, const std::vector<std::int64_t>& shape, Init init,
      std::source_location where = std::source_location::current()) = 0;

  // Regions made while the returned scope lives carry the tag. Without an index: the number of
  // scopes of that name so far.
  class Scope {
   public:
    explicit Scope(std::function<void()> leave) : leave_(std::move(leave)) {}
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() { leave_(); }

   private:
    std::function<void()> leave_;
  };
  [[nodiscard]] virtual Scope annotate(const std::string& tag, std::int64_t index = -1) = 0;

  // Runs `function` on `inputs` (earlier results or inputs of the model) and returns its results:
  // tensors of its own, none sharing memory with another, an input or a parameter. The runtime gets
  // them contiguous.
  virtual Tensors region(const Tensors& inputs, RegionFunction function,
                         std::source_location where = std::source_location::current()) = 0;

  // The sum of the token losses over counted labels: a scalar result of a region. Exactly once.
  virtual void loss(const at::Tensor& sum) = 0;

  // Integer and number keys of [model], for a user's own model; the default where the job does not
  // give it. A key that no model asks for is an error.
  virtual std::int64_t integer(const std::string& key, std::int64_t fallback) = 0;
  virtual double number(const std::string& key, double fallback) = 0;

  virtual const Config& config() const = 0;
  virtual at::ScalarType dtype() const = 0;  // of parameters and activations: [training] dtype
};

using ModelFunction = void (*)(Build&);

// Runs the function on the meta device for a few numbers of rows, which gives every size as a
// function of the rows, and checks that regions keep the rules. `measure`: also fills in FLOPs and
// bytes (capture). Any thread. (The job's model by name: runtime/models/find_model.h.)
Expected<LiveModel> build_model(const Config& config, ModelFunction function, bool measure);

// A value for every element, a function of (seed, name, element) alone; CPU, `dtype`.
at::Tensor initial_value(const Init& init, const std::string& name,
                         const std::vector<std::int64_t>& shape, at::ScalarType dtype,
                         std::uint64_t seed);

at::ScalarType to_torch(DType dtype);
DType from_torch(at::ScalarType dtype);

}  // namespace piper

// A model library says `PIPER_MODEL("my_model", build)` once; [model] name = "my_model", library =
// "my_model.so".
#define PIPER_MODEL(name, function)                                                  \
  extern "C" __attribute__((visibility("default"))) const char* piper_model_name() { \
    return name;                                                                     \
  }                                                                                  \
  extern "C" __attribute__((visibility("default"))) void piper_model_build(          \
      ::piper::Build& piper_build_) {                                                \
    function(piper_build_);                                                          \
  }
