#include "tests/support/power_loss.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <stdexcept>

namespace piper::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kFolder = -1;  // in place of a file

std::string content(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string parent(const std::string& path) {
  return path.substr(0, path.rfind('/', path.size() - 2));
}

class Disk {
 public:
  explicit Disk(const Files& before) {
    for (const auto& [path, bytes] : before) {
      if (path.ends_with('/')) {
        now_[path.substr(0, path.size() - 1)] = kFolder;
      } else {
        now_[path] = static_cast<int>(files_.size());
        files_.push_back({bytes, bytes});
      }
    }
    flushed_ = now_;
  }

  void apply(const FileCall& call, bool syncs) {
    if (call.what == "open") {
      open(call);
    } else if (call.what == "folder") {
      descriptors_[call.descriptor] = {kFolder, call.path};
    } else if (call.what == "write") {
      std::string& bytes = file(call).now;
      bytes.resize(std::max(bytes.size(), call.offset + call.bytes.size()));
      bytes.replace(call.offset, call.bytes.size(), call.bytes);
    } else if (call.what == "truncate") {
      file(call).now.resize(call.offset);
    } else if (call.what == "sync") {
      if (syncs) {
        sync(call.descriptor);
      }
    } else if (call.what == "rename") {
      change({call.path, call.to, now_.at(call.path)});
    } else if (call.what == "remove") {
      change({call.path, "", kFolder});
    } else if (call.what == "mkdir") {
      change({"", call.path, kFolder});
    } else if (call.what != "close") {
      throw std::runtime_error("no model of " + to_string(call));
    }
  }

  // Every choice of changes that reached the disk, with every choice of bytes of their files.
  void see(const std::function<void(const Files&)>& see) const {
    constexpr std::size_t kMostChanges = 12;
    if (pending_.size() > kMostChanges) {
      throw std::runtime_error("too many calls between two syncs of a folder");
    }
    for (std::size_t chosen = 0; chosen < std::size_t{1} << pending_.size(); ++chosen) {
      Names names = flushed_;
      for (std::size_t i = 0; i < pending_.size(); ++i) {
        if ((chosen >> i & 1) != 0) {
          make(pending_[i], names);
        }
      }
      choose_bytes(names, see);
    }
  }

 private:
  using Names = std::map<std::string, int>;  // what stands there: an index of files_, or kFolder
  struct File {
    std::string flushed, now;
  };
  struct Change {
    std::string from, to;  // "" = none
    int what;
  };
  struct Opened {
    int what;
    std::string path;
  };

  static void make(const Change& change, Names& names) {
    if (!change.from.empty()) {
      names.erase(change.from);
    }
    if (!change.to.empty()) {
      names[change.to] = change.what;
    }
  }

  // A name that is made and removed again before the disk has seen it leaves nothing to choose;
  // what it leaves in between is seen at the calls in between.
  void change(Change change) {
    make(change, now_);
    const auto made = std::find_if(pending_.rbegin(), pending_.rend(), [&](const Change& earlier) {
      return earlier.from == change.from || earlier.to == change.from;
    });
    if (change.to.empty() && made != pending_.rend() && made->from.empty()) {
      pending_.erase(std::next(made).base());
      return;
    }
    pending_.push_back(std::move(change));
  }

  void open(const FileCall& call) {
    if (now_.find(call.path) == now_.end()) {
      change({"", call.path, static_cast<int>(files_.size())});
      files_.emplace_back();
    }
    const int what = now_.at(call.path);
    descriptors_[call.descriptor] = {what, call.path};
    if (call.truncated) {
      files_[static_cast<std::size_t>(what)].now.clear();
    }
  }

  File& file(const FileCall& call) {
    return files_[static_cast<std::size_t>(descriptors_.at(call.descriptor).what)];
  }

  void sync(int descriptor) {
    const Opened& opened = descriptors_.at(descriptor);
    if (opened.what != kFolder) {
      File& file = files_[static_cast<std::size_t>(opened.what)];
      file.flushed = file.now;
      return;
    }
    std::vector<Change> rest;
    for (Change& change : pending_) {
      if (parent(change.from) == opened.path || parent(change.to) == opened.path) {
        make(change, flushed_);
      } else {
        rest.push_back(std::move(change));
      }
    }
    pending_ = std::move(rest);
  }

  // What may be of a file: as flushed, all of it, a part of what is new, or zeros for that.
  static std::vector<std::string> choices(const File& file) {
    if (file.flushed == file.now) {
      return {file.now};
    }
    const std::size_t old = std::min(file.flushed.size(), file.now.size());
    std::string zeros = file.now;
    std::fill(zeros.begin() + static_cast<std::ptrdiff_t>(old), zeros.end(), '\0');
    return {file.flushed, file.now, file.now.substr(0, old + (file.now.size() - old + 1) / 2),
            zeros};
  }

  void choose_bytes(const Names& names, const std::function<void(const Files&)>& see) const {
    std::vector<std::pair<Files, Names::const_iterator>> open{{Files(), names.begin()}};
    while (!open.empty()) {
      auto [files, next] = std::move(open.back());
      open.pop_back();
      if (next == names.end()) {
        see(files);
        continue;
      }
      const auto& [path, what] = *next;
      const bool reachable = has_parents(path, names);
      const std::vector<std::string> all = !reachable || what == kFolder
                                               ? std::vector<std::string>{""}
                                               : choices(files_[static_cast<std::size_t>(what)]);
      ++next;
      for (const std::string& bytes : all) {
        Files with = files;
        if (reachable) {
          with[what == kFolder ? path + '/' : path] = bytes;
        }
        open.emplace_back(std::move(with), next);
      }
    }
  }

  // Of what stands in a folder that is itself not there, nothing is.
  bool has_parents(const std::string& path, const Names& names) const {
    const std::string& root = flushed_.begin()->first;
    for (std::string folder = path; folder != root;) {
      folder = parent(folder);
      if (names.find(folder) == names.end()) {
        return false;
      }
    }
    return true;
  }

  std::vector<File> files_;
  Names now_, flushed_;
  std::vector<Change> pending_;
  std::map<int, Opened> descriptors_;
};

}  // namespace

Files look(const std::string& folder) {
  Files files{{folder + '/', ""}};
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string path = entry.path();
    entry.is_directory() ? files[path + '/'] = "" : files[path] = content(path);
  }
  return files;
}

std::vector<FileCall> read_calls(const std::string& log) {
  std::istringstream stream(content(log));
  std::vector<FileCall> calls;
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line);
    FileCall call;
    std::size_t count = 0;
    words >> call.number >> call.what;
    if (call.what == "open") {
      words >> call.descriptor >> call.truncated;
    } else if (call.what == "folder" || call.what == "sync" || call.what == "close") {
      words >> call.descriptor;
    } else if (call.what == "truncate") {
      words >> call.descriptor >> call.offset;
    } else if (call.what == "write") {
      words >> call.descriptor >> call.offset >> count;
      call.bytes.resize(count);
      stream.read(call.bytes.data(), static_cast<std::streamsize>(count));
    }
    std::getline(words >> std::ws, call.path);
    if (call.what == "rename") {
      std::getline(stream, call.to);
    }
    calls.push_back(std::move(call));
  }
  return calls;
}

std::string to_string(const FileCall& call) {
  return std::to_string(call.number) + ' ' + call.what + ' ' +
         (call.descriptor >= 0 ? std::to_string(call.descriptor) + ' ' : "") + call.path +
         (call.to.empty() ? "" : " to " + call.to) +
         (call.bytes.empty() ? "" : std::to_string(call.bytes.size()) + " bytes");
}

void after_power_loss(const Files& before, const std::vector<FileCall>& calls, std::size_t count,
                      const std::function<void(const Files&)>& see, std::size_t left_out) {
  Disk disk(before);
  for (std::size_t i = 0; i < count; ++i) {
    disk.apply(calls[i], i != left_out);
  }
  std::set<Files> seen;
  disk.see([&](const Files& files) {
    if (seen.insert(files).second) {
      see(files);
    }
  });
}

}  // namespace piper::testing
