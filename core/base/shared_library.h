// Opens shared libraries, and says in the loader's own words why one cannot be opened.
#pragma once

#include <string>
#include <tl/expected.hpp>

namespace piper {

// Stays open until the process ends: what is reached through it is never unloaded.
class SharedLibrary {
 public:
  // Why a library cannot be opened.
  struct Failure {
    std::string why;  // the loader's words, C++ symbols demangled: "/a/b.so: undefined symbol: f"
    std::string symbol;  // the undefined one, as C++ writes it; "": something else
  };
  // All symbols resolved now, none made global. A name without a slash is a file of the working
  // folder: the loader searches nowhere. Runs the library's static constructors. Any thread.
  static tl::expected<SharedLibrary, Failure> open(const std::string& file);

  // nullptr where the library exports no such thing.
  template <typename Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(address(name));
  }

 private:
  explicit SharedLibrary(void* handle) : handle_(handle) {}
  void* address(const char* name) const;

  void* handle_ = nullptr;
};

// `loader`: what dlerror says.
SharedLibrary::Failure loader_failure(const std::string& loader);

}  // namespace piper
