// src/analysis/loads_in_flight.cpp - loads that a thread issues before it waits
#include "ptxgen/analysis/loads_in_flight.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "ptxgen/analysis/cfg.hpp"
#include "ptxgen/analysis/registers.hpp"

namespace ptxgen::inline v0::analysis {

namespace {

// The loads of a basic block that no instruction has waited for yet.
class Pending {
 public:
  void issue(std::uint32_t bytes) {
    loads_.push_back({bytes, {}});
    bytes_ += bytes;
  }
  void loaded_into(std::uint32_t reg) { loads_.back().registers.push_back(reg); }
  void wait_for(std::uint32_t reg) {
    for (std::size_t i = loads_.size(); i-- != 0;) {
      const std::vector<std::uint32_t>& registers = loads_[i].registers;
      if (std::find(registers.begin(), registers.end(), reg) == registers.end()) continue;
      for (std::size_t done = 0; done <= i; ++done) bytes_ -= loads_[done].bytes;
      loads_.erase(loads_.begin(), loads_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      return;
    }
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t count() const noexcept { return loads_.size(); }

 private:
  struct Load {
    std::uint32_t bytes;
    std::vector<std::uint32_t> registers;
  };
  std::vector<Load> loads_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

LoadsInFlight loads_in_flight(const ptx::Function& function, const MemoryReport& report) {
  std::map<std::uint32_t, std::uint32_t> bytes_of;  // of the loads, by statement
  for (const MemoryAccess& access : report.accesses) {
    const bool load = access.reads && !access.writes && access.copy == CopyKind::None;
    if (load && access.space == ptx::Space::Global) bytes_of[access.statement] = access.bytes;
  }
  const Cfg cfg(function);
  const RegisterIndex index(function);
  LoadsInFlight largest;
  for (const Block& block : cfg.blocks()) {
    Pending pending;
    for (std::uint32_t at = block.first; at < block.end; ++at) {
      for (const NumberedAccess& access : index.accesses(at)) {
        if (!access.write) pending.wait_for(access.reg);
      }
      const auto load = bytes_of.find(at);
      if (load == bytes_of.end()) continue;
      pending.issue(load->second);
      for (const NumberedAccess& access : index.accesses(at)) {
        if (access.write) pending.loaded_into(access.reg);
      }
      if (pending.bytes() <= largest.bytes) continue;
      largest = {static_cast<std::uint32_t>(pending.count()), pending.bytes(), at};
    }
  }
  return largest;
}

}  // namespace ptxgen::inline v0::analysis
