// src/emulator/race/report.cpp - reports races as findings
#include <string>

#include "emulator/race/global.hpp"
#include "emulator/state/address_space.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

std::string shared_name(const Grid& grid, std::uint64_t offset) {
  if (grid.kernel_image == nullptr) return {};
  if (const auto* const variable = shared_variable(grid, offset)) {
    return format_text("shared variable '{}'", variable->name);
  }
  return offset >= grid.kernel_image->static_shared_bytes ? "dynamic shared memory" : "";
}

std::string global_name(const AddressSpace* space, std::uint64_t address) {
  const Allocation* const found = space == nullptr ? nullptr : space->find(address);
  if (found == nullptr) return {};
  return format_text("byte {} of {}", address - found->start,
                     found->name.empty() ? "an allocation at " + hex(found->start) : found->name);
}

/// " of block (1,0,0)" for another block's shared memory, else empty.
std::string of_owner(const Conflict& conflict) {
  return conflict.owner == nullptr ? std::string() : " of block " + to_text(conflict.owner->id);
}

class ReporterSink final : public RaceSink {
 public:
  explicit ReporterSink(AddressSpace* space) : space_(space) {}

  void found(Context& context, std::uint32_t statement, const Conflict& conflict) override {
    if (!conflict.reversed)
      return report(context, statement, conflict.lane, conflict.other, conflict);
    // The finding is about the earlier access: report it for the thread that made it.
    const OtherParty& who = conflict.other;
    Cta cta;
    cta.grid = context.grid;
    cta.worker = context.worker;
    cta.linear = who.cta;
    cta.order = context.cta->order;
    cta.id = block_position(context.grid->grid, who.cta);
    cta.threads = context.cta->threads;
    Warp warp;
    warp.cta = &cta;
    warp.index = who.thread / kLanes;
    warp.first_thread = warp.index * kLanes;
    Context theirs = context;
    theirs.cta = &cta;
    theirs.warp = &warp;
    const OtherParty me{statement, context.cta->linear, context.warp->first_thread + conflict.lane};
    report(theirs, who.statement, who.thread % kLanes, me, conflict);
  }

  const std::byte* content(const Context& context, bool shared, std::uint64_t address) override {
    if (!shared) return space_ == nullptr ? nullptr : space_->host(address);
    if (context.cta->shared == nullptr || address >= context.cta->shared_bytes) return nullptr;
    return context.cta->shared + address;
  }

 private:
  void report(const Context& context, std::uint32_t statement, std::uint32_t lane,
              const OtherParty& other, const Conflict& conflict) const {
    const Grid& grid = *context.grid;
    grid.reporter->report(context, statement, conflict.rule, lane, other, [&]() -> FindingText {
      const auto name = [&](std::uint32_t thread, const Dim3& block, bool with_block) {
        const std::string position = to_text(thread_position(grid.block, thread));
        return with_block ? format_text("thread {} of block {}", position, to_text(block))
                          : format_text("thread {}", position);
      };
      return race_text(
          conflict, name(context.warp->first_thread + lane, context.cta->id, true),
          name(other.thread, block_position(grid.grid, other.cta), !conflict.same_block),
          grid.image->line(other.statement) == 0 ? "elsewhere"
                                                 : grid.image->at_text(other.statement),
          conflict.shared ? shared_name(grid, conflict.address) + of_owner(conflict)
                          : global_name(space_, conflict.address));
    });
  }

  AddressSpace* space_;
};

}  // namespace

std::unique_ptr<Races> Races::for_shared(const Cta& cta) {
  return make_shared_races(cta, std::make_shared<ReporterSink>(nullptr));
}

std::unique_ptr<Races> Races::for_global(AddressSpace& space, const RacePlan& plan) {
  if (!space.race_shadow()) {
    space.race_shadow() = std::make_shared<GlobalShadow>(kGlobalBase, space.reserved_bytes());
  }
  return make_global_races(space.race_shadow(), std::make_shared<ReporterSink>(&space), &space,
                           plan);
}

}  // namespace ptxgen::inline v0::emulator
