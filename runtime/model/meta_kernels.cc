#include "runtime/model/meta_kernels.h"

#include <ATen/ExpandUtils.h>
#include <ATen/OpMathType.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/sum.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/model/run_on_zeros.h"

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

Tensor dropout_backward(const Tensor& gradient, const Tensor& mask, double) {
  return at::mul(gradient, mask);
}

Tensor relu(const Tensor& input) {
  return at::clamp_min(input, 0);
}

Tensor largest(const Tensor& input) {
  TORCH_CHECK(input.numel() > 0, "max() and min(): expected elements, got none");
  return at::empty({}, input.options());
}

Tensor deviation(const Tensor& input, at::OptionalIntArrayRef dims, const optional<at::Scalar>&,
                 bool keepdim) {
  return at::sum(input, dims, keepdim, c10::toRealValueType(input.scalar_type()));
}

Tensor mse_loss_backward(const Tensor&, const Tensor& input, const Tensor&, std::int64_t) {
  return at::empty_like(input, at::MemoryFormat::Contiguous);
}

std::tuple<Tensor, Tensor, Tensor> layer_norm_backward(
    const Tensor&, const Tensor& input, c10::SymIntArrayRef, const Tensor&, const Tensor&,
    const optional<Tensor>& weight, const optional<Tensor>& bias, std::array<bool, 3> wanted) {
  const auto like_whole = [](bool is_wanted, const Tensor& tensor) {
    return is_wanted ? at::empty_like(tensor, at::MemoryFormat::Contiguous) : Tensor();
  };
  return {like_whole(wanted[0], input), like_whole(wanted[1] && weight, weight.value_or(Tensor())),
          like_whole(wanted[2] && bias, bias.value_or(Tensor()))};
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

// What aten::convolution calls on any device that is not the CPU or CUDA; it has looked at the
// sizes.
Tensor convolution(const Tensor& input, const Tensor& weight, const optional<Tensor>&,
                   c10::SymIntArrayRef stride, c10::SymIntArrayRef padding,
                   c10::SymIntArrayRef dilation, bool transposed,
                   c10::SymIntArrayRef output_padding, c10::SymInt groups) {
  const IntArrayRef strides = C10_AS_INTARRAYREF_SLOW(stride);
  const IntArrayRef paddings = C10_AS_INTARRAYREF_SLOW(padding);
  const IntArrayRef dilations = C10_AS_INTARRAYREF_SLOW(dilation);
  return like(input, transposed
                         ? at::native::conv_input_size(input.sizes(), weight.sizes(), paddings,
                                                       C10_AS_INTARRAYREF_SLOW(output_padding),
                                                       strides, dilations, groups.expect_int())
                         : at::native::conv_output_size(input.sizes(), weight.sizes(), paddings,
                                                        strides, dilations));
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
    meta->impl("native_dropout_backward", dropout_backward);
    meta->impl("native_layer_norm_backward", layer_norm_backward);
    meta->impl("mse_loss_backward", mse_loss_backward);
    meta->impl("relu", relu);
    meta->impl("max", largest);
    meta->impl("min", largest);
    meta->impl("std.correction", deviation);
    meta->impl("var.correction", deviation);
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
