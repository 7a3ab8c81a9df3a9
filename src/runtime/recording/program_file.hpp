// src/runtime/recording/program_file.hpp - the file of a recorded program
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "driver/recorder/sink.hpp"
#include "runtime/recording/program_json.hpp"
#include "support/file_system.hpp"

namespace ptxgen::inline v0 {

/// Writes lines while the program runs (program_json.hpp). Ends itself, which it says on standard
/// error, at a size, where the file cannot be written, and in a process that the program forked.
///
/// Threads: `end` and `ended` from any, while another writes.
class ProgramFile : public driver::recorder::StepSink {
 public:
  /// `path` is that of messages; `handle` is open and closed at the end.
  ProgramFile(FileSystem& files, FileSystem::Handle handle, std::string path,
              std::uint64_t limit_bytes);
  ~ProgramFile() override;

  void begin(std::string_view device, std::string_view gpu) override;
  [[nodiscard]] std::string keep(std::span<const std::byte> content) override;
  [[nodiscard]] std::string keep_output(std::span<const std::byte> output) override;
  void write(const driver::Step& step) override;
  void note(const std::string& text) override;
  void end(std::string_view failure) override;
  [[nodiscard]] bool ended() const noexcept override;

 private:
  void put(std::string_view line);
  [[nodiscard]] int put_all(std::string_view line);
  void close(std::string_view failure, const std::string& cut_off);
  void say(const std::string& text) const;

  FileSystem& files_;
  const FileSystem::Handle handle_;
  const std::string path_;
  const std::uint64_t limit_;
  const int process_;
  mutable std::mutex mutex_;
  std::uint64_t written_ = 0;
  std::uint64_t outputs_kept_ = 0;
  std::set<std::string> contents_;
  std::vector<std::string> launch_hashes_;
  FrameSteps frames_;
  bool ended_ = false;
};

}  // namespace ptxgen::inline v0
