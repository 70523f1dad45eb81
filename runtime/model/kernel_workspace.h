// What the kernels of the CPU take inside an operator beyond its results, where that is a copy of
// what they read.
//
// LibTorch multiplies matrices of bfloat16 with oneDNN, whose kernel for AVX-512 packs a block of
// each operand into an order of its own, and sums in float32. Of [m, k] times [k, n] on one thread:
//
//     block   at most 256 rows, at most 64 columns, at most 512 deep (1024 where k is above that
//             and the first operand lies row by row)
//     bytes   2 x depth x 64                 second operand
//           + 2 x rows x depth + 128         first operand, where it lies column by column
//           + 4 x rows x columns             sums; of up to 16 blocks of columns where the first
//                                            operand is packed and k takes several blocks
//           + 1024
//
// with the depth rounded up to 32 elements. Products of at most 4096 multiplications take nothing.
// The kernel may choose fewer rows, for its caches: then this is more than it takes. Measured with
// LibTorch 2.11 (oneDNN 3.x); tests/runtime/models/workspace_test.cc compares the two. Other
// processors have other blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "core/ir/model_graph.h"

namespace piper {

// A matrix product whose kernel works on copies of its operands, a part at a time. Of a batch, one.
struct RepackedProduct {
  Affine rows, inner, columns;  // [rows, inner] times [inner, columns]
  bool transposed = false;      // the first operand lies in memory column by column

  bool operator==(const RepackedProduct&) const = default;
};

// Bytes, at most.
std::int64_t repacked_bytes(const RepackedProduct& product, std::int64_t rows);

// Region::workspace of a region with these products: for any rows, that of the largest.
std::vector<SizeFrom> kernel_workspace(const std::vector<RepackedProduct>& products);

}  // namespace piper
