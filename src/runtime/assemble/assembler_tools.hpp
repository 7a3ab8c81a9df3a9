// src/runtime/assemble/assembler_tools.hpp - the three tools of Assembler
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "ptxgen/driver/table.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "support/dynamic_library.hpp"
#include "support/toolkit.hpp"

namespace ptxgen::inline v0 {

enum class ToolVerdict : std::uint8_t {
  Accepted,
  Rejected,
  UnknownTarget,
  Unusable,
  TimedOut,
  Failed
};

/// Result of a tool for one PTX text.
struct ToolOutcome {
  ToolVerdict verdict = ToolVerdict::Failed;
  std::vector<std::byte> cubin;  ///< if accepted
  std::string log;               ///< complete
  std::string reason;            ///< for messages, if the log does not state it
  int status = 0;                ///< the tool's own status, 0 if it accepted
};

/// nvJitLink's functions. Handles are opaque, a status is an int, 0 means success.
class NvJitLinkTool {
 public:
  explicit NvJitLinkTool(const Settings& settings);
  [[nodiscard]] AssemblerFinding finding() const;
  /// `ptx` is terminated by a zero byte.
  [[nodiscard]] ToolOutcome assemble(const std::string& ptx, const AssembleOptions& options) const;

 private:
  using Handle = void*;
  [[nodiscard]] bool resolve_all();
  [[nodiscard]] std::string read_log(Handle handle, int (*size)(Handle, std::size_t*),
                                     int (*read)(Handle, char*)) const;

  DynamicLibrary library_;
  std::string version_;
  std::string problem_;
  int (*create_)(Handle*, std::uint32_t, const char* const*) = nullptr;
  int (*destroy_)(Handle*) = nullptr;
  int (*add_data_)(Handle, int, const void*, std::size_t, const char*) = nullptr;
  int (*complete_)(Handle) = nullptr;
  int (*cubin_size_)(Handle, std::size_t*) = nullptr;
  int (*cubin_)(Handle, void*) = nullptr;
  int (*error_size_)(Handle, std::size_t*) = nullptr;
  int (*error_)(Handle, char*) = nullptr;
  int (*info_size_)(Handle, std::size_t*) = nullptr;
  int (*info_)(Handle, char*) = nullptr;
};

class PtxasTool {
 public:
  explicit PtxasTool(const Settings& settings);
  [[nodiscard]] AssemblerFinding finding() const;
  [[nodiscard]] std::string version() const;  ///< runs ptxas once
  [[nodiscard]] ToolOutcome assemble(const std::string& ptx, const AssembleOptions& options) const;

 private:
  FoundProgram program_;
  std::string temp_dir_;
  mutable std::once_flag version_once_;
  mutable std::string version_;
};

class DriverTool {
 public:
  explicit DriverTool(const Settings& settings);
  [[nodiscard]] AssemblerFinding finding() const;
  [[nodiscard]] std::string version() const;
  [[nodiscard]] ToolOutcome assemble(const std::string& ptx, const AssembleOptions& options) const;

 private:
  struct Buffers;
  void start() const;
  [[nodiscard]] static driver::CUresult create_link(const driver::Table& driver,
                                                    const AssembleOptions& options,
                                                    Buffers& buffers, driver::CUlinkState& link);
  [[nodiscard]] ToolOutcome attempt(const std::string& ptx, const AssembleOptions& options,
                                    Buffers& buffers) const;
  [[nodiscard]] std::string status_text(const std::string& call, driver::CUresult status) const;

  driver::Libcuda libcuda_;
  int ordinal_ = 0;
  mutable std::once_flag started_;
  mutable driver::CUdevice device_ = 0;
  mutable std::string problem_;
  mutable int problem_status_ = 0;
  mutable std::string version_;
};

/// One error in a log.
struct LogError {
  std::uint32_t line = 0;  ///< 1-based line of the PTX, 0 if the tool names none
  std::string text;        ///< without the tool's prefix; empty if there is no error
};

/// The first error of a log that names a line, else the first error.
[[nodiscard]] LogError first_error(const std::string& log);
/// All errors that name a line, in the log's order and one per line; else the first error.
[[nodiscard]] std::vector<LogError> all_errors(const std::string& log);

/// Fills the figures of `assembly` from its log, and from its cubin if the log lacks them.
void read_resources(Assembly& assembly);

/// sm_ + number + optional a or f; false for anything else.
[[nodiscard]] bool is_target_name(const std::string& target);

}  // namespace ptxgen::inline v0
