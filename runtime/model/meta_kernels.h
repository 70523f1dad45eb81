// Shape rules that LibTorch has only in Python, for the operators of common models on the meta
// device.
#pragma once

namespace piper {

// Registers them, once a process. Any thread.
void install_meta_kernels();

}  // namespace piper
