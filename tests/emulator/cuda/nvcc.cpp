// tests/emulator/cuda/nvcc.cpp - CUDA files to PTX, kept in the build tree
#include "nvcc.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <mutex>
#include <thread>

#include "ptxgen/support/error.hpp"
#include "ptxgen/support/settings.hpp"
#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"
#include "support/toolkit.hpp"

namespace ptxgen::test {

namespace fs = std::filesystem;

namespace {

std::vector<std::string> options_of(const Build& build) {
  std::vector<std::string> options{"-std=c++17", "-w", "-ptx", "-arch=" + target_of(build)};
  if (build.variant == "O0") options.insert(options.end(), {"-Xcicc", "-O0"});
  if (build.variant == "debug") options.emplace_back("-G");
  return options;
}

std::string content_or_nothing(const fs::path& path) {
  std::error_code none;
  if (!fs::exists(path, none)) return {};
  return read_file(path.string());
}

// Held while a file exists or is made; a file system without locks has it compiled twice.
class MadeOnce {
 public:
  explicit MadeOnce(const fs::path& path)
      : descriptor_(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644)) {
    if (descriptor_ >= 0) (void)flock(descriptor_, LOCK_EX);
  }
  ~MadeOnce() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  MadeOnce(const MadeOnce&) = delete;
  MadeOnce& operator=(const MadeOnce&) = delete;

 private:
  int descriptor_;
};

// The text of a file of kernels/ and of the files that it includes from there.
std::string source_of(const fs::path& path) {
  std::string source = read_file(path.string());
  const std::string include = "#include \"";
  for (std::size_t at = source.find(include); at != std::string::npos;
       at = source.find(include, at)) {
    at += include.size();
    const std::string name = source.substr(at, source.find('"', at) - at);
    source += read_file((path.parent_path() / name).string());
  }
  return source;
}

}  // namespace

std::string target_of(const Build& build) {
  return "sm_" + std::to_string(build.sm) + (build.specific ? "a" : "");
}

std::vector<Build> builds_from(unsigned min_sm) {
  std::vector<Build> builds;
  for (const unsigned sm : {80u, 75u, 90u}) {
    if (sm < min_sm) continue;
    for (const std::string_view variant : {"default", "O0", "debug"}) {
      builds.push_back({sm, variant});
    }
  }
  return builds;
}

Nvcc::Nvcc() {
  const FoundProgram found = find_program(Settings::from_environment(), "nvcc");
  program_ = found.path;
  for (const SearchAttempt& attempt : found.attempts) {
    searched_ += (searched_.empty() ? "" : ", ") + attempt.where + " (" + attempt.reason + ")";
  }
  if (!program_.empty()) version_ = run_program({program_, "--version"}).out;
}

std::string Nvcc::together(std::string_view file) {
  const std::string line = "#include \"" + std::string(file) + "\"";
  for (const fs::directory_entry& entry : fs::directory_iterator(CUDA_KERNELS_FOLDER)) {
    std::string name = entry.path().filename().string();
    if (!name.starts_with("together_")) continue;
    if (read_file(entry.path().string()).find(line) != std::string::npos) return name;
  }
  return std::string(file);
}

std::string Nvcc::compile_one(std::string_view file, const std::string& source,
                              const Build& build) const {
  const std::vector<std::string> options = options_of(build);
  // The whole key is kept beside the text, so that equal means equal.
  std::string key = version_;
  for (const std::string& option : options) key += option + "\n";
  key += source;

  const fs::path folder = CUDA_PTX_FOLDER;
  fs::create_directories(folder);
  const std::string stem = std::string(file.substr(0, file.rfind('.'))) + "." + target_of(build) +
                           "." + std::string(build.variant);
  const fs::path text_path = folder / (stem + ".ptx");
  const fs::path key_path = folder / (stem + ".key");
  const MadeOnce held(folder / (stem + ".lock"));
  if (content_or_nothing(key_path) == key) {
    if (std::string text = content_or_nothing(text_path); !text.empty()) return text;
  }

  const TemporaryDirectory scratch(Settings::from_environment().temp_dir);
  const std::string built = scratch.file("out.ptx");
  std::vector<std::string> call{program_};
  call.insert(call.end(), options.begin(), options.end());
  call.insert(call.end(), {"-o", built, std::string(file)});
  SubprocessOptions limits;
  limits.folder = CUDA_KERNELS_FOLDER;  // .file names stay relative
  limits.timeout = std::chrono::minutes(5);
  const SubprocessResult result = run_program(call, limits);
  if (result.exit_code != 0)
    throw Error(Stage::Assemble, "rejected", stem + ": " + result.out + result.err);
  std::string text = read_file(built);
  // A run that is killed between the two leaves no key, or one that does not fit.
  fs::remove(key_path);
  write_file(text_path.string(), text);
  write_file(key_path.string(), key);
  return text;
}

std::vector<std::string> Nvcc::compile(std::string_view file,
                                       const std::vector<Build>& builds) const {
  const std::string source = source_of(fs::path(CUDA_KERNELS_FOLDER) / file);
  std::vector<std::string> texts(builds.size());
  std::atomic<std::size_t> next{0};
  std::mutex lock;
  std::exception_ptr failure;
  const auto work = [&] {
    for (std::size_t i = next++; i < builds.size(); i = next++) {
      try {
        texts[i] = compile_one(file, source, builds[i]);
      } catch (...) {
        const std::lock_guard guard(lock);
        if (!failure) failure = std::current_exception();
      }
    }
  };
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  while (threads.size() + 1 < std::min(cores, builds.size())) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
  return texts;
}

}  // namespace ptxgen::test
