// src/emulator/race_report.cpp - hands races to the reporter
#include <string>

#include "emulator/race_detail.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

Dim3 block_position(const Dim3& grid, std::uint64_t linear) {
  const std::uint64_t plane = std::uint64_t{grid.x} * grid.y;
  return {static_cast<std::uint32_t>(linear % grid.x),
          static_cast<std::uint32_t>(linear / grid.x % grid.y),
          static_cast<std::uint32_t>(linear / plane)};
}

std::string shared_name(const Grid& grid, std::uint64_t offset) {
  if (grid.kernel_image == nullptr) return {};
  for (const auto& variable : grid.kernel_image->shared_variables) {
    if (offset >= variable.offset && offset - variable.offset < variable.bytes) {
      return "shared variable '" + variable.name + "'";
    }
  }
  return offset >= grid.kernel_image->static_shared_bytes ? "dynamic shared memory" : "";
}

class ReporterSink final : public RaceSink {
 public:
  void found(Context& context, std::uint32_t statement, const Conflict& conflict) override {
    const Grid& grid = *context.grid;
    grid.reporter->report(
        context, statement, conflict.rule, conflict.lane, conflict.other, [&]() -> FindingText {
          const auto name = [&](std::uint32_t thread, const Dim3& block, bool with_block) {
            std::string text = "thread " + to_text(thread_position(grid.block, thread));
            if (with_block) text += " of block " + to_text(block);
            return text;
          };
          return race_text(
              conflict, name(context.warp->first_thread + conflict.lane, context.cta->id, true),
              name(conflict.other.thread, block_position(grid.grid, conflict.other.cta),
                   !conflict.same_block),
              grid.image->line(conflict.other.statement),
              conflict.shared ? shared_name(grid, conflict.address) : std::string{});
        });
  }

  const std::byte* content(const Context& context, bool shared, std::uint64_t address) override {
    if (!shared || context.cta->shared == nullptr || address >= context.cta->shared_bytes) {
      return nullptr;
    }
    return context.cta->shared + address;
  }
};

}  // namespace

std::unique_ptr<Races> Races::for_shared(const Cta& cta) {
  return make_shared_races(cta, std::make_shared<ReporterSink>());
}

}  // namespace ptxgen::inline v0::emulator
