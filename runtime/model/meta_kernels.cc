#include "runtime/model/meta_kernels.h"

#include <ATen/ExpandUtils.h>
#include <ATen/OpMathType.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace piper {
namespace {

using at::IntArrayRef;
using at::Tensor;
using std::optional;

Tensor like(const Tensor& tensor, IntArrayRef shape) {
  return at::empty(shape, tensor.options());
}

Tensor index_select(const Tensor& input, std::int64_t dim, const Tensor& index) {
  std::vector<std::int64_t> shape = input.sizes().vec();
  shape[at::maybe_wrap_dim(dim, input.dim())] = index.numel();
  return like(input, shape);
}

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  return at::empty(at::infer_size(condition.sizes(), at::infer_size(a.sizes(), b.sizes())),
                   a.options().dtype(at::result_type(a, b)));
}

std::tuple<Tensor, Tensor> dropout(const Tensor& input, double, optional<bool>) {
  return {at::empty_like(input), at::empty(input.sizes(), input.options().dtype(at::kBool))};
}

// The kernels of attention work on a tile of the positions at a time, in memory of their own for
// each thread, of which a rank's stream has one (FlashAttentionKernel.cpp of PyTorch 2.11).
struct AttentionTile {
  explicit AttentionTile(const Tensor& query, const Tensor& key)
      : queries(std::min<std::int64_t>(query.size(2), query.size(2) >= 768   ? 256
                                                      : query.size(2) >= 192 ? 64
                                                                             : 32)),
        keys(std::min<std::int64_t>(key.size(2), 512)),
        wide(query.options().dtype(at::toOpMathType(query.scalar_type()))),
        is_narrow(at::toOpMathType(query.scalar_type()) != query.scalar_type()) {}

  std::int64_t queries, keys;
  at::TensorOptions wide;
  bool is_narrow;
};

std::tuple<Tensor, Tensor> attention(const Tensor& query, const Tensor& key, const Tensor&, double,
                                     bool, const optional<Tensor>&, optional<double>) {
  const Tensor log_sum = at::empty({query.size(0), query.size(2), query.size(1)},
                                   query.options().dtype(at::toOpMathType(query.scalar_type())));
  const Tensor output =
      at::empty({query.size(0), query.size(2), query.size(1), query.size(3)}, query.options());
  const AttentionTile tile(query, key);
  const Tensor scores = at::empty({tile.queries, tile.keys + 2 + query.size(3)}, tile.wide);
  const Tensor narrow = at::empty({tile.is_narrow ? tile.queries * tile.keys : 0}, query.options());
  return {output.transpose(1, 2), log_sum.transpose(1, 2)};
}

std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& gradient, const Tensor& query,
                                                      const Tensor& key, const Tensor& value,
                                                      const Tensor&, const Tensor&, double, bool,
                                                      const optional<Tensor>&, optional<double>) {
  const auto like_transposed = [](const Tensor& tensor) {
    return at::empty({tensor.size(0), tensor.size(2), tensor.size(1), tensor.size(3)},
                     tensor.options())
        .transpose(1, 2);
  };
  std::tuple results{like_transposed(query), like_transposed(key), like_transposed(value)};
  const Tensor contiguous = gradient.transpose(1, 2).contiguous();
  const AttentionTile tile(query, key);
  const Tensor scores = at::empty({2 * tile.queries * tile.keys}, tile.wide);
  const Tensor narrow =
      at::empty({tile.is_narrow ? 2 * tile.queries * tile.keys : 0}, query.options());
  const Tensor sums = at::empty({tile.queries}, tile.wide);
  return results;
}

Tensor embedding_backward(const Tensor& gradient, const Tensor&, c10::SymInt rows, c10::SymInt,
                          bool) {
  return like(gradient, {rows.expect_int(), gradient.size(-1)});
}

// Operators whose results have shapes that depend on values, or that read values.
bool depends_on_values(const std::string& name) {
  constexpr std::array<const char*, 14> kNames{"aten::nonzero",
                                               "aten::unique_dim",
                                               "aten::unique_consecutive",
                                               "aten::_unique",
                                               "aten::_unique2",
                                               "aten::unique_dim_consecutive",
                                               "aten::masked_select",
                                               "aten::repeat_interleave",
                                               "aten::bincount",
                                               "aten::histc",
                                               "aten::equal",
                                               "aten::_local_scalar_dense",
                                               "aten::is_set_to",
                                               "aten::count_nonzero"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool lacks_meta_kernel(const c10::OperatorHandle& op) {
  using c10::DispatchKey;
  return op.operator_name().name.starts_with("aten::") &&
         op.hasKernelForDispatchKey(DispatchKey::CPU) &&
         !op.hasKernelForDispatchKey(DispatchKey::Meta) &&
         !op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) &&
         !op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutogradNonFunctional) &&
         !op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd) &&
         !depends_on_values(op.operator_name().name);
}

// `value` with each tensor replaced.
c10::IValue map_tensors(const c10::IValue& value,
                        const std::function<Tensor(const Tensor&)>& replace) {
  if (value.isTensor()) {
    return value.toTensor().defined() ? c10::IValue(replace(value.toTensor())) : value;
  }
  if (value.isTensorList()) {
    c10::List<Tensor> replaced;
    for (const Tensor& tensor : value.toTensorVector()) {
      replaced.push_back(tensor.defined() ? replace(tensor) : tensor);
    }
    return replaced;
  }
  return value;
}

// Zeros in the shape of a meta tensor; one element in memory, unless the operator writes to it.
Tensor zeros_for(const Tensor& meta, bool is_written) {
  if (!meta.is_meta()) {
    return meta;
  }
  const at::TensorOptions options = meta.options().device(at::kCPU);
  return is_written ? at::zeros(meta.sizes(), options)
                    : at::zeros({}, options).expand(meta.sizes());
}

// What aten::convolution calls on any device that is not the CPU or CUDA.
Tensor convolution(const Tensor& input, const Tensor& weight, const optional<Tensor>& bias,
                   c10::SymIntArrayRef stride, c10::SymIntArrayRef padding,
                   c10::SymIntArrayRef dilation, bool transposed,
                   c10::SymIntArrayRef output_padding, c10::SymInt groups) {
  const auto zeros = [](const Tensor& meta) { return zeros_for(meta, /*is_written=*/false); };
  return like(input,
              at::convolution(zeros(input), zeros(weight), bias ? zeros(*bias) : Tensor(),
                              C10_AS_INTARRAYREF_SLOW(stride), C10_AS_INTARRAYREF_SLOW(padding),
                              C10_AS_INTARRAYREF_SLOW(dilation), transposed,
                              C10_AS_INTARRAYREF_SLOW(output_padding), groups.expect_int())
                  .sizes());
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(const Tensor& gradient, const Tensor& input,
                                                        const Tensor& weight, c10::SymIntArrayRef,
                                                        c10::SymIntArrayRef, c10::SymIntArrayRef,
                                                        bool, c10::SymIntArrayRef, c10::SymInt,
                                                        std::array<bool, 3> wanted) {
  return {wanted[0] ? like(gradient, input.sizes()) : Tensor(),
          wanted[1] ? like(gradient, weight.sizes()) : Tensor(),
          wanted[2] ? like(gradient, {gradient.size(1)}) : Tensor()};
}

void run_on_zeros(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::size_t count = op.schema().arguments().size();
  const std::vector<c10::IValue> arguments = torch::jit::last(*stack, count).vec();
  torch::jit::drop(*stack, count);
  std::vector<std::pair<Tensor, Tensor>> written;  // CPU, and the meta tensor that it stands for
  for (std::size_t i = 0; i < count; ++i) {
    const c10::AliasInfo* alias = op.schema().arguments()[i].alias_info();
    const bool is_written = alias != nullptr && alias->isWrite();
    stack->push_back(map_tensors(arguments[i], [&](const Tensor& meta) {
      Tensor zeros = zeros_for(meta, is_written);
      if (is_written) {
        written.emplace_back(zeros, meta);
      }
      return zeros;
    }));
  }

  op.callBoxed(stack);

  const std::size_t results = op.schema().returns().size();
  for (std::size_t i = stack->size() - results; i < stack->size(); ++i) {
    (*stack)[i] = map_tensors((*stack)[i], [&](const Tensor& result) {
      for (const auto& [zeros, meta] : written) {
        if (zeros.is_same(result)) {
          if (meta.sizes() != result.sizes()) {
            meta.resize_(result.sizes());
          }
          return meta;
        }
      }
      return at::empty_strided(result.sizes(), result.strides(),
                               result.options().device(at::kMeta));
    });
  }
}

}  // namespace

void install_meta_kernels() {
  static torch::Library* const library = [] {
    auto* meta = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::Meta, __FILE__,
                                    __LINE__);
    meta->impl("index_select", index_select);
    meta->impl("where.self", where);
    meta->impl("convolution_overrideable", convolution);
    meta->impl("convolution_backward_overrideable", convolution_backward);
    meta->impl("native_dropout", dropout);
    meta->impl("_scaled_dot_product_flash_attention_for_cpu", attention);
    meta->impl("_scaled_dot_product_flash_attention_for_cpu_backward", attention_backward);
    meta->impl("embedding_dense_backward", embedding_backward);
    for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
      const auto op = c10::Dispatcher::singleton().findOp(name);
      if (op && lacks_meta_kernel(*op)) {
        const std::string overload = name.overload_name.empty() ? "" : "." + name.overload_name;
        meta->impl((name.name + overload).c_str(),
                   torch::CppFunction::makeFromBoxedFunction<&run_on_zeros>());
      }
    }
    return meta;
  }();
  (void)library;
}

}  // namespace piper
