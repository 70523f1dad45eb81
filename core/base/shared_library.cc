#include "core/base/shared_library.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace piper {
namespace {

// `_ZN5piper4stepEv` -> `piper::step()`; other names as they are.
std::string demangled(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text != nullptr ? text.get() : symbol;
}

}  // namespace

SharedLibrary::Failure loader_failure(const std::string& loader) {
  constexpr std::string_view kMark = "undefined symbol: ";
  const std::size_t mark = loader.find(kMark);
  if (mark == std::string::npos) {
    return {loader, ""};
  }
  const std::size_t begin = mark + kMark.size();
  const std::size_t end = std::min(loader.size(), loader.find_first_of(", \t\n", begin));
  const std::string symbol = demangled(loader.substr(begin, end - begin));
  return {loader.substr(0, begin) + symbol + loader.substr(end), symbol};
}

tl::expected<SharedLibrary, SharedLibrary::Failure> SharedLibrary::open(const std::string& file) {
  const std::string path = file.find('/') == std::string::npos ? "./" + file : file;
  ::dlerror();  // what an earlier call left
  if (void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr) {
    return SharedLibrary(handle);
  }
  const char* const why = ::dlerror();
  return tl::unexpected<Failure>(loader_failure(why != nullptr ? why : "the loader says nothing"));
}

void* SharedLibrary::address(const char* name) const {
  return ::dlsym(handle_, name);
}

}  // namespace piper
