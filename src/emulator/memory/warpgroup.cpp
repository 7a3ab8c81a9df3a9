// src/emulator/memory/warpgroup.cpp - wgmma: issue, groups, and the rules of its registers
#include "emulator/memory/warpgroup.hpp"

#include <algorithm>

#include "emulator/memory/access.hpp"
#include "emulator/race/race.hpp"
#include "emulator/report/report.hpp"
#include "emulator/state/written_bits.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using Operation = WarpgroupMatrices::Operation;
using WarpState = WarpgroupMatrices::WarpState;
using u64 = std::uint64_t;

unsigned first_lane(const Context& context) {
  return static_cast<unsigned>(std::countr_zero(context.active | 1u << 31));
}

/// " (line 9)", or nothing.
std::string at(const Context& context, std::uint32_t statement) {
  if (statement == kNoIndex) return {};
  const std::string text = context.grid->image->at_text(statement);
  return text.empty() ? text : " " + text;
}

template <class Text>
void report(const Context& context, std::uint32_t statement, Rule rule, std::uint32_t other,
            Text&& text) {
  OtherParty party;
  party.statement = other;
  party.cta = context.cta->linear;
  party.thread = context.warp->first_thread + first_lane(context);
  if (other == kNoIndex) party = {};
  context.grid->reporter->report(context, statement, rule, first_lane(context), party,
                                 std::forward<Text>(text));
}

/// Whether the lanes of a warp give the same value; reports where they do not.
u64 uniform(Context& context, const Step& step, const Slot& slot, std::string_view name) {
  const u64 value = get_lane(context, slot, first_lane(context));
  bool same = true;
  for_each_lane(context.active,
                [&](unsigned lane) { same = same && get_lane(context, slot, lane) == value; });
  if (same) return value;
  report(context, step.statement, Rule::MatrixDescriptor, kNoIndex, [&] {
    return FindingText{
        format_text("the lanes of warp {} give different values as {}", context.warp->index, name),
        {"rule: descriptors and scale-d are the same in all threads of a warpgroup",
         "compute it from values that are uniform in the warpgroup, not from the "
         "thread number"}};
  });
  return value;
}

/// Registers of the operation: touched since the last fence, or in flight otherwise than as d.
void check_register(Context& context, const Step& step, WarpgroupMatrices& all, WarpState& state,
                    const Slot& slot, bool as_a) {
  const auto touched = state.touched.find(slot.offset);
  if (touched != state.touched.end()) {
    const WarpgroupMatrices::Touch touch = touched->second;
    state.touched.erase(touched);
    report(context, step.statement, Rule::WarpgroupOrder, touch.statement, [&] {
      return FindingText{
          format_text("wgmma has a register as {} that the thread {}{}, without a wgmma.fence in "
                      "between",
                      as_a ? "fragment of a" : "accumulator", touch.writes ? "wrote" : "read",
                      at(context, touch.statement)),
          {"put wgmma.fence.sync.aligned between the access and the wgmma"}};
    });
  }
  bool in_a = false;
  const Operation* const pending = all.in_flight(*context.warp, slot.offset, in_a);
  if (pending == nullptr || in_a == as_a) return;
  report(context, step.statement, Rule::WarpgroupOrder, pending->step->statement, [&] {
    return FindingText{format_text("wgmma has a register as {} that is {} of the wgmma{} in flight",
                                   as_a ? "fragment of a" : "accumulator",
                                   in_a ? "a fragment of a" : "the accumulator",
                                   at(context, pending->step->statement)),
                       {"wait for that one first (wgmma.commit_group, wgmma.wait_group)"}};
  });
}

void check_registers(Context& context, const Step& step, WarpgroupMatrices& all,
                     const MemoryDetail& detail) {
  WarpState& state = all.warps[context.warp->index];
  if (!state.fenced) {
    report(context, step.statement, Rule::WarpgroupOrder, kNoIndex, [&] {
      return FindingText{"no wgmma.fence comes before the first wgmma of the warp",
                         {"rule: the registers of a wgmma are ordered with earlier accesses by "
                          "wgmma.fence.sync.aligned",
                          "put one after the initialisation of the accumulators"}};
    });
    state.fenced = true;
  }
  for (const Slot& slot : detail.data) check_register(context, step, all, state, slot, false);
  if (!detail.as<WarpgroupDetail>().a_in_registers) return;
  for (unsigned i = 0; i < 4; ++i) {
    check_register(context, step, all, state, detail.sources[i], true);
  }
}

/// False, and reported, if the descriptor describes no matrix in shared memory.
bool check_matrix(Context& context, const Step& step, WarpgroupMatrices& all, u64 bits,
                  const MatrixView& view, char name) {
  const u64 use = view.rows | u64{view.depth} << 16 | u64{view.element_bytes} << 32 |
                  u64{view.transposed} << 40;
  if (all.valid.contains({bits, use})) return true;
  const DescriptorFault fault = check_descriptor(bits, view, context.cta->shared_bytes);
  if (!fault.present()) {
    all.valid.emplace(bits, use);
    return true;
  }
  report(context, step.statement, Rule::MatrixDescriptor, kNoIndex, [&] {
    return FindingText{
        format_text("the descriptor {:#018x} of matrix {}: {}", bits, name, fault.message),
        {fault.remedy}};
  });
  return false;
}

void check_written(Context& context, const Step& step, const Operation& operation) {
  if (!context.worker->memory.check_written) return;
  const Cta& cta = *context.cta;
  const auto unwritten = std::ranges::find_if(operation.pieces, [&](std::uint32_t piece) {
    return !all_written(cta.shared_written, piece, kPieceBytes);
  });
  if (unwritten == operation.pieces.end()) return;
  report(context, step.statement, Rule::UninitializedRead, kNoIndex, [&] {
    return FindingText{
        format_text("wgmma reads 16 bytes at offset {} of shared memory that were never written",
                    hex(*unwritten)),
        {"wait for the copy that fills the matrix, and check start address and offsets of the "
         "descriptor"}};
  });
}

void check_races(Context& context, const Step& step, const Operation& operation) {
  Races* const races = context.cta->races.get();
  if (races == nullptr) return;
  const std::uint32_t store =
      races->matrix_issue(context, step.statement, operation.pieces, operation.number);
  if (store == kNoIndex) return;
  report(context, step.statement, Rule::ProxyFence, store, [&] {
    return FindingText{
        format_text("wgmma reads shared memory that was stored to{}, with no fence.proxy.async "
                    "after the store",
                    at(context, store)),
        {"rule: wgmma reads through the async proxy, which does not see ordinary stores before a "
         "proxy fence",
         "put fence.proxy.async after the stores, in the threads that made them, before the "
         "barrier"}};
  });
}

/// The first warp to issue it: fills in what the whole warpgroup shares.
void begin(Context& context, const Step& step, WarpgroupMatrices& all, Operation& operation) {
  const MemoryDetail& detail = context.code->memory[step.detail];
  const WarpgroupDetail& product = detail.as<WarpgroupDetail>();
  operation.step = &step;
  operation.detail = &detail;
  operation.number = ++all.numbers;
  const unsigned depth = warpgroup_depth(product.a_type);
  const unsigned bytes = element_bytes(product.a_type);
  const MatrixView a{kWarpgroupRows, depth, bytes, product.transpose_a};
  const MatrixView b{product.columns, depth, bytes, product.transpose_b};
  if (!product.a_in_registers) {
    operation.valid = check_matrix(context, step, all, operation.a, a, 'a');
  }
  operation.valid &= check_matrix(context, step, all, operation.b, b, 'b');
  if (!operation.valid) return;
  if (!product.a_in_registers)
    pieces_of(MatrixDescriptor::unpacked(operation.a), a, operation.pieces);
  pieces_of(MatrixDescriptor::unpacked(operation.b), b, operation.pieces);
  check_written(context, step, operation);
}

/// Another warp of the warpgroup has issued something else.
void report_mismatch(Context& context, const Step& step, const Operation& operation, u64 a, u64 b,
                     bool accumulate) {
  report(context, step.statement, Rule::WarpgroupMismatch, operation.step->statement, [&] {
    const std::string message =
        operation.step != &step
            ? format_text(
                  "warp {} executes this wgmma where another warp of its warpgroup "
                  "executed the one{}",
                  context.warp->index, at(context, operation.step->statement))
            : format_text("warp {} gives {} for this wgmma, another warp of its warpgroup {}",
                          context.warp->index,
                          accumulate != operation.accumulate ? format_text("scale-d {}", accumulate)
                          : a != operation.a ? format_text("the descriptor {:#018x} of a", a)
                                             : format_text("the descriptor {:#018x} of b", b),
                          accumulate != operation.accumulate
                              ? format_text("{}", operation.accumulate)
                          : a != operation.a ? format_text("{:#018x}", operation.a)
                                             : format_text("{:#018x}", operation.b));
    return FindingText{message,
                       {"rule: the four warps of a warpgroup (warps 4 i to 4 i + 3) execute the "
                        "same wgmma instructions with the same descriptors"}};
  });
}

/// The wait covers operations below this number.
u64 covered(const WarpState& state, u64 max_pending) {
  const std::size_t groups = state.committed.size();
  return max_pending >= groups ? state.waited
                               : std::max(state.waited, state.committed[groups - 1 - max_pending]);
}

bool issued_by_all(const Context& context, const Operation& operation) {
  const auto& warps = context.cta->warps;
  const std::size_t first = context.warp->index / kWarpgroupWarps * kWarpgroupWarps;
  for (std::size_t i = 0; i < kWarpgroupWarps && first + i < warps.size(); ++i) {
    if (operation.parts[i].lanes == 0 && !warps[first + i].done()) return false;
  }
  return true;
}

void wake(const Context& context) {
  auto& warps = context.cta->warps;
  const std::size_t first = context.warp->index / kWarpgroupWarps * kWarpgroupWarps;
  for (std::size_t i = first; i < std::min(first + kWarpgroupWarps, warps.size()); ++i) {
    for (Split& split : warps[i].splits) {
      if (split.state == Split::State::Warpgroup) split.state = Split::State::Ready;
    }
  }
}

void report_incomplete(Context& context, const Step& step) {
  const std::size_t warps = context.cta->warps.size();
  if (warps % kWarpgroupWarps == 0 ||
      context.warp->index / kWarpgroupWarps != warps / kWarpgroupWarps) {
    return;
  }
  report(context, step.statement, Rule::WarpgroupMismatch, kNoIndex, [&] {
    return FindingText{
        format_text("the block has {}, so that its last warpgroup has {} of {}",
                    count_text(warps, "warp"), warps % kWarpgroupWarps, kWarpgroupWarps),
        {"launch blocks whose threads that execute wgmma are a multiple of 128"}};
  });
}

}  // namespace

WarpgroupMatrices& WarpgroupMatrices::of(Cta& cta) {
  if (cta.matrices == nullptr) {
    cta.matrices = std::make_shared<WarpgroupMatrices>(cta.warps.size());
  }
  return *cta.matrices;
}

const Operation* WarpgroupMatrices::in_flight(const Warp& warp, std::uint32_t offset, bool& in_a) {
  const WarpState& state = warps[warp.index];
  Group& group = group_of(warp);
  for (u64 number = state.issued; number-- > state.waited;) {
    const Operation* const operation = group.find(number);
    if (operation == nullptr) continue;
    const auto is_register = [&](const Slot& slot) { return slot.offset == offset; };
    in_a = false;
    if (std::ranges::any_of(operation->detail->data, is_register)) return operation;
    in_a = true;
    if (operation->detail->as<WarpgroupDetail>().a_in_registers &&
        std::any_of(operation->detail->sources.begin(), operation->detail->sources.begin() + 4,
                    is_register)) {
      return operation;
    }
  }
  return nullptr;
}

void run_warpgroup_fence(Context& context, const Step& step) {
  if (context.mask(step) == 0) return;
  WarpState& state = WarpgroupMatrices::of(*context.cta).warps[context.warp->index];
  state.fenced = true;
  state.touched.clear();
}

void run_warpgroup_product(Context& context, const Step& step) {
  context.active = context.mask(step);
  if (context.active == 0) return;
  if (context.worker->memory.counters == nullptr) make_memory_view(context);
  context.warp->failed_poll.consecutive = 0;
  const MemoryDetail& detail = context.code->memory[step.detail];
  const WarpgroupDetail& product = detail.as<WarpgroupDetail>();
  WarpgroupMatrices& all = WarpgroupMatrices::of(*context.cta);
  report_incomplete(context, step);
  check_registers(context, step, all, detail);
  const std::size_t of_b = product.a_in_registers ? 4 : 1;
  const u64 a =
      product.a_in_registers ? 0 : uniform(context, step, detail.sources[0], "descriptor of a");
  const u64 b = uniform(context, step, detail.sources[of_b], "descriptor of b");
  const bool accumulate = uniform(context, step, detail.sources[of_b + 1], "scale-d") != 0;

  WarpState& state = all.warps[context.warp->index];
  WarpgroupMatrices::Group& group = all.group_of(*context.warp);
  const u64 number = state.issued++;
  Operation* operation = group.find(number);
  if (operation == nullptr) {
    operation = &group.operations.emplace_back();
    operation->a = a;
    operation->b = b;
    operation->accumulate = accumulate;
    begin(context, step, all, *operation);
  } else if (operation->step != &step || operation->a != a || operation->b != b ||
             operation->accumulate != accumulate) {
    report_mismatch(context, step, *operation, a, b, accumulate);
  }
  Operation::Part& part = operation->parts[context.warp->index % kWarpgroupWarps];
  part = {context.activation, context.active};
  if (operation->valid) check_races(context, step, *operation);
  wake(context);
}

void run_warpgroup_commit(Context& context, const Step& step) {
  if (context.mask(step) == 0) return;
  WarpState& state = WarpgroupMatrices::of(*context.cta).warps[context.warp->index];
  state.committed.push_back(state.issued);
}

bool can_finish_wait(Context& context, const Step& step) {
  WarpgroupMatrices& all = WarpgroupMatrices::of(*context.cta);
  const WarpState& state = all.warps[context.warp->index];
  const auto& wait = context.code->memory[step.detail].as<WaitGroupDetail>();
  const u64 end = covered(state, wait.max_pending);
  WarpgroupMatrices::Group& group = all.group_of(*context.warp);
  for (u64 number = state.waited; number < end; ++number) {
    const Operation* const operation = group.find(number);
    if (operation != nullptr && !operation->done && !issued_by_all(context, *operation)) {
      return false;
    }
  }
  return true;
}

std::string missing_warps(Context& context, const Step& step) {
  WarpgroupMatrices& all = WarpgroupMatrices::of(*context.cta);
  const WarpState& state = all.warps[context.warp->index];
  const auto& wait = context.code->memory[step.detail].as<WaitGroupDetail>();
  const u64 end = covered(state, wait.max_pending);
  const std::uint32_t first = context.warp->index / kWarpgroupWarps * kWarpgroupWarps;
  std::string text;
  for (std::uint32_t i = first;
       i < std::min<std::size_t>(first + kWarpgroupWarps, context.cta->warps.size()); ++i) {
    if (all.warps[i].issued >= end || context.cta->warps[i].done()) continue;
    text += format_text("{}{}", text.empty() ? "" : ", ", i);
  }
  return text;
}

void run_warpgroup_wait(Context& context, const Step& step) {
  context.active = context.mask(step);
  if (context.active == 0) return;
  WarpgroupMatrices& all = WarpgroupMatrices::of(*context.cta);
  WarpState& state = all.warps[context.warp->index];
  const auto& wait = context.code->memory[step.detail].as<WaitGroupDetail>();
  const u64 end = covered(state, wait.max_pending);
  WarpgroupMatrices::Group& group = all.group_of(*context.warp);
  for (u64 number = state.waited; number < end; ++number) {
    Operation* const operation = group.find(number);
    if (operation != nullptr && !operation->done) carry_out(context, *operation);
  }
  if (end > state.waited && context.cta->races) {
    context.cta->races->acquire(context, context.active,
                                kWarpgroupObject + context.warp->index / kWarpgroupWarps,
                                context.cta);
  }
  state.waited = end;
  // Operations that all warps have waited for are dropped.
  const std::size_t first = context.warp->index / kWarpgroupWarps * kWarpgroupWarps;
  u64 kept = end;
  for (std::size_t i = first; i < std::min(first + kWarpgroupWarps, all.warps.size()); ++i) {
    if (!context.cta->warps[i].done()) kept = std::min(kept, all.warps[i].waited);
  }
  while (!group.operations.empty() && group.first < kept) {
    group.operations.pop_front();
    ++group.first;
  }
}

void run_warpgroup_access(Context& context, const Step& step) {
  const std::uint32_t mask = context.mask(step);
  if (mask == 0) return;
  WarpgroupMatrices& all = WarpgroupMatrices::of(*context.cta);
  WarpState& state = all.warps[context.warp->index];
  for (const WarpgroupAccesses::Access& access :
       context.code->warpgroup_accesses[step.detail].accesses) {
    WarpgroupMatrices::Touch& touch = state.touched[access.offset];
    touch = {step.statement, access.writes};
    if (state.issued == state.waited) continue;
    bool in_a = false;
    const Operation* const pending = all.in_flight(*context.warp, access.offset, in_a);
    if (pending == nullptr) continue;
    report(context, step.statement, Rule::WarpgroupOrder, pending->step->statement, [&] {
      return FindingText{
          format_text("{} {}, {} of the wgmma{}, which no wait has completed",
                      access.writes ? "writes" : "reads", access.name,
                      in_a ? "a fragment of a" : "an accumulator",
                      at(context, pending->step->statement)),
          {"put wgmma.commit_group after the wgmma and wgmma.wait_group before this access"}};
    });
  }
}

void run_proxy_fence(Context& context, const Step& step) {
  const std::uint32_t mask = context.mask(step);
  if (mask != 0 && context.cta->races) context.cta->races->proxy_fence(context, mask);
}

void forget_matrices(Cta& cta) { cta.matrices.reset(); }

}  // namespace ptxgen::inline v0::emulator
