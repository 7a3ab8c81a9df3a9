// tests/emulator/race_runner.hpp - blocks without programs, for the race checks
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "emulator/race/detail.hpp"

namespace ptxgen::test {

/// A grid whose threads do what a test says; conflicts are collected.
class RaceRunner {
 public:
  struct Found {
    std::uint32_t statement = 0;
    std::uint64_t cta = 0;
    std::uint32_t thread = 0;
    emulator::Conflict conflict;
  };
  using Addresses = std::function<std::uint64_t(unsigned lane)>;
  static constexpr std::uint32_t kAll = 0xffffffffu;

  RaceRunner(std::uint32_t blocks, std::uint32_t warps, std::uint32_t shared_bytes = 4096,
             std::uint32_t threads = 0);
  ~RaceRunner();

  // Who acts: a block (0 at first) and one of its warps.
  RaceRunner& block(std::uint32_t block);
  RaceRunner& warp(std::uint32_t warp);

  // Accesses by lanes of a mask. `statement` names the instruction.
  void shared(emulator::RaceAccess::Kind kind, std::uint32_t statement, std::uint32_t mask,
              unsigned bytes, const Addresses& addresses, ptx::Modifier order = ptx::Modifier::none,
              const std::function<std::uint64_t(unsigned lane)>& values = {},
              std::uint64_t ticket = 0);
  void load(std::uint32_t statement, const Addresses& addresses, std::uint32_t mask = kAll,
            unsigned bytes = 4);
  void store(std::uint32_t statement, const Addresses& addresses, std::uint32_t mask = kAll,
             unsigned bytes = 4);
  void global(emulator::RaceAccess::Kind kind, std::uint32_t statement, std::uint32_t mask,
              unsigned bytes, const Addresses& addresses, ptx::Modifier order = ptx::Modifier::none,
              ptx::Modifier scope = ptx::Modifier::none,
              const std::function<std::uint64_t(unsigned lane)>& values = {});

  /// All warps of the block (or those of a mask) reach a barrier.
  void barrier(std::uint32_t id = 0, std::uint32_t warps = kAll);
  void barrier_arrive(std::uint32_t id);  ///< this warp, without waiting
  void warp_sync(std::uint32_t mask = kAll);
  void fence(ptx::Modifier scope, std::uint32_t mask = kAll,
             ptx::Modifier order = ptx::Modifier::acq_rel, std::uint32_t statement = 900);
  void release(std::uint64_t object, std::uint32_t mask = kAll);
  void acquire(std::uint64_t object, std::uint32_t mask = kAll);
  void async_complete(std::uint32_t mask = kAll, std::uint64_t through = ~std::uint64_t{0});
  void exit(std::uint32_t mask);

  /// What was found since the last call.
  std::vector<Found> take();
  /// How many of a rule since the last call of `take`.
  [[nodiscard]] std::size_t count(emulator::Rule rule) const;

  /// Checks global accesses too; before anything else.
  void with_global();
  emulator::Races& shared_races() { return *ctas_[block_]->races; }
  emulator::Races& global_races() { return *grid_.races; }
  emulator::Context& context();
  emulator::Grid& grid() { return grid_; }
  emulator::Cta& cta() { return *ctas_[block_]; }
  void end_launch();  ///< and begins the next one

 private:
  class Sink;
  emulator::RaceAccess access(emulator::RaceAccess::Kind kind, std::uint32_t mask, unsigned bytes,
                              const Addresses& addresses, ptx::Modifier order,
                              const std::function<std::uint64_t(unsigned)>& values);
  emulator::Grid grid_;
  std::vector<std::unique_ptr<emulator::Cta>> ctas_;
  std::vector<std::vector<std::byte>> shared_;
  std::vector<std::byte> global_;
  std::shared_ptr<Sink> sink_;
  std::shared_ptr<emulator::GlobalShadow> shadow_;
  emulator::Context context_;
  std::uint32_t block_ = 0;
  std::uint32_t warp_ = 0;
  std::array<std::uint64_t, 32> addresses_{};
  std::vector<std::byte> values_;
};

/// base + step * lane.
[[nodiscard]] inline RaceRunner::Addresses strided(std::uint64_t base, std::uint64_t step) {
  return [=](unsigned lane) { return base + step * lane; };
}

}  // namespace ptxgen::test
