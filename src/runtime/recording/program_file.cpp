// src/runtime/recording/program_file.cpp - the file of a recorded program
#include "runtime/recording/program_file.hpp"

#include <unistd.h>

#include <cstdio>

#include "ptxgen/version.hpp"
#include "runtime/recording/outputs.hpp"
#include "runtime/recording/program_json.hpp"
#include "support/count.hpp"
#include "support/format.hpp"
#include "support/numbers.hpp"

namespace ptxgen::inline v0 {

namespace {

using driver::recorder::StepSink;

/// Outputs of launches are kept up to so many bytes of all; beyond, their hashes only.
constexpr std::uint64_t kMaxOutputs = std::uint64_t{16} << 20;

// Said whatever PTXGEN_LOG is: the user asked for the file.
void say_of_recording(const std::string& path, const std::string& text) {
  std::fprintf(stderr, "ptxgen: PTXGEN_RECORD=%s: %s\n", path.c_str(), text.c_str());
}

// "%p" is the number of the process.
std::string path_for_process(std::string path) {
  const std::string number = std::to_string(::getpid());
  for (std::size_t at = path.find("%p"); at != std::string::npos; at = path.find("%p", at)) {
    path.replace(at, 2, number);
    at += number.size();
  }
  return path;
}

bool parse_limit(const std::string& text, std::uint64_t& bytes) {
  const std::uint64_t mebibytes = parse_number<std::uint64_t>(text).value_or(0);
  bytes = mebibytes << 20;
  return mebibytes != 0 && bytes >> 20 == mebibytes;
}

}  // namespace

ProgramFile::ProgramFile(FileSystem& files, FileSystem::Handle handle, std::string path,
                         std::uint64_t limit_bytes)
    : files_(files),
      handle_(handle),
      path_(std::move(path)),
      limit_(limit_bytes),
      process_(::getpid()) {}

ProgramFile::~ProgramFile() { end({}); }

void ProgramFile::begin(std::string_view device, std::string_view gpu) {
  const std::lock_guard lock(mutex_);
  put(header_line(format_text("ptxgen {}, {}", kVersion, device), gpu));
}

std::string ProgramFile::keep(std::span<const std::byte> content) {
  std::string hash = hash_text(content);
  const std::lock_guard lock(mutex_);
  if (contents_.insert(hash).second) put(content_line(hash, content));
  return hash;
}

std::string ProgramFile::keep_output(std::span<const std::byte> output) {
  {
    const std::lock_guard lock(mutex_);
    if (outputs_kept_ + output.size() > kMaxOutputs) return hash_text(output);
    outputs_kept_ += output.size();
  }
  return keep(output);
}

void ProgramFile::write(const driver::Step& step) {
  const std::lock_guard lock(mutex_);
  put(step_line(step));
  const std::vector<driver::StepOutput>* const outputs = frames_.outputs_of(step);
  if (outputs != nullptr && !ended_) {
    launch_hashes_.push_back(to_hex(hash128(text_of_outputs(*outputs))));
  }
}

void ProgramFile::note(const std::string& text) {
  say(text);
  const std::lock_guard lock(mutex_);
  put(note_line(text));
}

void ProgramFile::end(std::string_view failure) {
  const std::lock_guard lock(mutex_);
  if (!ended_ && ::getpid() == process_) close(failure, {});
}

bool ProgramFile::ended() const noexcept {
  const std::lock_guard lock(mutex_);
  return ended_ || ::getpid() != process_;
}

// A line that does not fit is not begun.
void ProgramFile::put(std::string_view line) {
  if (ended_) return;
  if (written_ + line.size() > limit_) {
    const std::string why =
        format_text("the recording ends after {}: it has {} MiB (PTXGEN_RECORD_LIMIT)",
                    count_text(launch_hashes_.size(), "launch"), limit_ >> 20);
    say(why);
    close({}, why);
    return;
  }
  const int status = put_all(line);
  if (status == 0) return;
  say(format_text("the recording ends after {}: {}", count_text(launch_hashes_.size(), "launch"),
                  errno_text(status)));
  ended_ = true;
  (void)files_.close(handle_);
}

int ProgramFile::put_all(std::string_view line) {
  auto rest = std::as_bytes(std::span(line));
  while (!rest.empty()) {
    std::size_t count = 0;
    if (const int status = files_.write(handle_, rest, count)) return status;
    rest = rest.subspan(count);
    written_ += count;
  }
  return 0;
}

void ProgramFile::close(std::string_view failure, const std::string& cut_off) {
  ended_ = true;
  int status = put_all(end_line(failure, cut_off, hash_of(launch_hashes_)));
  const int closed = files_.close(handle_);
  if (status == 0) status = closed;
  if (status != 0) say(format_text("the end is not written: {}", errno_text(status)));
}

void ProgramFile::say(const std::string& text) const { say_of_recording(path_, text); }

}  // namespace ptxgen::inline v0

namespace ptxgen::inline v0::driver::recorder {

std::unique_ptr<StepSink> open_program_recording(const Settings& settings) {
  // As long as the process: the recording ends with it.
  static FileSystem* const files = new FileSystem;
  std::uint64_t limit = 0;
  if (!parse_limit(settings.record_limit, limit)) {
    say_of_recording(settings.record,
                     format_text("nothing is recorded: PTXGEN_RECORD_LIMIT={} is no number of MiB",
                                 settings.record_limit));
    return nullptr;
  }
  const std::string path = path_for_process(settings.record);
  FileSystem::Handle handle{};
  if (const int status = files->create(path, handle)) {
    say_of_recording(path, format_text("nothing is recorded: {}; a recording is a new file, and "
                                       "'%p' in its name is the number of the process",
                                       errno_text(status)));
    return nullptr;
  }
  return std::make_unique<ProgramFile>(*files, handle, path, limit);
}

}  // namespace ptxgen::inline v0::driver::recorder
