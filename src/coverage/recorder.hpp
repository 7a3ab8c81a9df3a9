// src/coverage/recorder.hpp - counts the accesses of a launch in cells
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "coverage/cells.hpp"
#include "ptxgen/emulator/observer.hpp"

namespace ptxgen::coverage {

/// A buffer whose accesses are counted.
struct WatchedBuffer {
  std::string name;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint32_t element_bytes = 4;
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
};

/// Counts, in cells of the watched buffers, the elements that threads read and write: `ld`, `st`,
/// `atom`, `red`, `cp.async` and bulk copies. `run` it with `emulator::observe`, one launch after
/// the other.
class CellRecorder : public emulator::Observer {
 public:
  explicit CellRecorder(std::vector<WatchedBuffer> buffers);

  bool before(const emulator::Moment& moment) override;

  [[nodiscard]] std::vector<CellMap> take() { return std::move(maps_); }
  /// Opcodes that access global memory in a way that is not counted (tensor copies, `wmma`), as
  /// text; empty if there was none.
  [[nodiscard]] const std::string& uncounted() const noexcept { return uncounted_; }

 private:
  /// One operand in brackets of an instruction.
  struct Access {
    std::string address;        ///< the register's name
    std::int64_t offset = 0;    ///< bytes
    std::string size_register;  ///< of a bulk copy; empty: `bytes`
    std::uint64_t bytes = 0;    ///< of a lane
    bool reads = false;
    bool writes = false;
  };
  using Accesses = std::vector<std::vector<Access>>;  ///< by statement

  [[nodiscard]] Accesses accesses_of(const ptx::Module& module, const ptx::Function& function);
  void add_accesses(const ptx::Module& module, const ptx::Function& function,
                    const ptx::Instruction& s, std::vector<Access>& to);
  void count(std::uint64_t address, std::uint64_t bytes, const Access& access, std::uint64_t block,
             std::uint32_t thread);

  std::vector<WatchedBuffer> buffers_;
  std::vector<CellMap> maps_;
  std::unordered_map<const ptx::Function*, Accesses> functions_;
  const ptx::Function* last_ = nullptr;
  const Accesses* last_accesses_ = nullptr;
  std::string uncounted_;
};

}  // namespace ptxgen::coverage
