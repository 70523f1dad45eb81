#include "runtime/model/meta_kernels.h"

#include <ATen/ExpandUtils.h>
#include <ATen/OpMathType.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/result_type.h>
#include <torch/library.h>

#include <optional>
#include <tuple>
#include <vector>

namespace piper {
namespace {

using at::IntArrayRef;
using at::Tensor;
using std::optional;

Tensor like(const Tensor& tensor, IntArrayRef shape) {
  return at::empty(shape, tensor.options());
}

std::vector<std::int64_t> broadcast(const Tensor& a, const Tensor& b) {
  return at::infer_size(a.sizes(), b.sizes());
}

Tensor index_select(const Tensor& input, std::int64_t dim, const Tensor& index) {
  std::vector<std::int64_t> shape = input.sizes().vec();
  shape[at::maybe_wrap_dim(dim, input.dim())] = index.numel();
  return like(input, shape);
}

Tensor embedding_backward(const Tensor& gradient, const Tensor&, std::int64_t rows, std::int64_t,
                          bool) {
  return like(gradient, {rows, gradient.size(-1)});
}

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  return at::empty(at::infer_size(condition.sizes(), broadcast(a, b)),
                   a.options().dtype(at::result_type(a, b)));
}

Tensor& where_out(const Tensor& condition, const Tensor& a, const Tensor& b, Tensor& out) {
  out.resize_(at::infer_size(condition.sizes(), broadcast(a, b)));
  return out;
}

Tensor& broadcast_out(const Tensor& a, const Tensor& b, Tensor& out) {
  out.resize_(broadcast(a, b));
  return out;
}

Tensor flip(const Tensor& input, IntArrayRef) {
  return at::empty_like(input);
}

std::tuple<Tensor, Tensor> dropout(const Tensor& input, double, optional<bool>) {
  return {at::empty_like(input), at::empty(input.sizes(), input.options().dtype(at::kBool))};
}

Tensor dropout_backward(const Tensor& gradient, const Tensor&, double) {
  return at::empty_like(gradient);
}

std::tuple<Tensor, Tensor, Tensor> layer_norm(const Tensor& input, IntArrayRef normalized,
                                              const optional<Tensor>&, const optional<Tensor>&,
                                              double) {
  std::vector<std::int64_t> shape = input.sizes().vec();
  for (std::size_t i = shape.size() - normalized.size(); i < shape.size(); ++i) {
    shape[i] = 1;
  }
  return {at::empty_like(input, at::MemoryFormat::Contiguous), like(input, shape),
          like(input, shape)};
}

std::tuple<Tensor, Tensor, Tensor> layer_norm_backward(const Tensor&, const Tensor& input,
                                                       IntArrayRef, const Tensor&, const Tensor&,
                                                       const optional<Tensor>& weight,
                                                       const optional<Tensor>& bias,
                                                       std::array<bool, 3> wanted) {
  return {wanted[0] ? at::empty_like(input) : Tensor(),
          wanted[1] && weight ? at::empty_like(*weight) : Tensor(),
          wanted[2] && bias ? at::empty_like(*bias) : Tensor()};
}

std::tuple<Tensor, Tensor> attention(const Tensor& query, const Tensor&, const Tensor&, double,
                                     bool, const optional<Tensor>&, optional<double>) {
  const Tensor log_sum = at::empty({query.size(0), query.size(2), query.size(1)},
                                   query.options().dtype(at::toOpMathType(query.scalar_type())));
  const Tensor output =
      at::empty({query.size(0), query.size(2), query.size(1), query.size(3)}, query.options());
  return {output.transpose(1, 2), log_sum.transpose(1, 2)};
}

std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor&, const Tensor& query,
                                                      const Tensor& key, const Tensor& value,
                                                      const Tensor&, const Tensor&, double, bool,
                                                      const optional<Tensor>&, optional<double>) {
  return {at::empty_like(query), at::empty_like(key), at::empty_like(value)};
}

}  // namespace

void install_meta_kernels() {
  static torch::Library* const library = [] {
    auto* meta = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::Meta, __FILE__,
                                    __LINE__);
    meta->impl("index_select", index_select);
    meta->impl("embedding_dense_backward", embedding_backward);
    meta->impl("where.self", where);
    meta->impl("where.self_out", where_out);
    meta->impl("polar.out", broadcast_out);
    meta->impl("logical_and.out", broadcast_out);
    meta->impl("flip", flip);
    meta->impl("native_dropout", dropout);
    meta->impl("native_dropout_backward", dropout_backward);
    meta->impl("native_layer_norm", layer_norm);
    meta->impl("native_layer_norm_backward", layer_norm_backward);
    meta->impl("_scaled_dot_product_flash_attention_for_cpu", attention);
    meta->impl("_scaled_dot_product_flash_attention_for_cpu_backward", attention_backward);
    return meta;
  }();
  (void)library;
}

}  // namespace piper
