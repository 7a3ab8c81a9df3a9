// src/emulator/machine/calls.cpp - device functions: activations, arguments, results
#include <algorithm>
#include <new>

#include "emulator/machine/warp.hpp"
#include "emulator/report/report.hpp"
#include "emulator/state/written_bits.hpp"
#include "emulator/vector/lane_steps.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

/// Minimum local memory of a call, for registers that hardware saves on the stack.
constexpr std::uint32_t kCallBytes = 64;
/// A shadow without undefined bits.
constexpr std::uint64_t kDefined = ~std::uint64_t{0};

/// Special registers that differ between blocks of a launch.
bool differs_by_block(ptx::SpecialRegister which) {
  return which == ptx::SpecialRegister::ctaid || which == ptx::SpecialRegister::smid ||
         which == ptx::SpecialRegister::clusterid || which == ptx::SpecialRegister::cluster_ctaid ||
         which == ptx::SpecialRegister::cluster_ctarank;
}

void fill_frame(Warp& warp, Frame& frame, std::uint32_t local_base, bool is_new) {
  const std::uint64_t order = warp.cta->order;
  const bool same_block = !is_new && frame.filled_for == order;
  const bool same_base = !is_new && frame.local_base == local_base;
  if (same_block && same_base) return;
  Context context;
  context.frame = frame.registers;
  for (const FrameValue& value : frame.code->frame_values) {
    switch (value.kind) {
      case FrameValue::Kind::Constant:
        if (!is_new) continue;
        for (unsigned lane = 0; lane < kLanes; ++lane) {
          set_lane(context, value.slot, lane, value.value);
        }
        break;
      case FrameValue::Kind::Special:
        if (same_block ||
            (!is_new && !differs_by_block(static_cast<ptx::SpecialRegister>(value.value)))) {
          continue;
        }
        for (unsigned lane = 0; lane < kLanes; ++lane) {
          set_lane(context, value.slot, lane,
                   special_value(warp, static_cast<ptx::SpecialRegister>(value.value),
                                 value.component, lane));
        }
        break;
      case FrameValue::Kind::LocalAddress:
      case FrameValue::Kind::GenericLocal:
        if (same_base) continue;
        for (unsigned lane = 0; lane < kLanes; ++lane) {
          const std::uint64_t window =
              value.kind == FrameValue::Kind::GenericLocal ? kLocalWindow : 0;
          set_lane(context, value.slot, lane, window + local_base + value.value);
        }
        break;
    }
  }
  frame.filled_for = order;
  frame.local_base = local_base;
}

/// The memory of a place in one lane's activation.
struct PlaceBytes {
  std::byte* memory = nullptr;
  std::uint64_t* written = nullptr;
  std::uint64_t first = 0;
};

PlaceBytes memory_of(const Cta& cta, const Warp& warp, unsigned lane, std::uint32_t offset) {
  const std::uint64_t thread = warp.first_thread + lane;
  PlaceBytes result;
  result.memory = cta.local + thread * cta.local_stride + offset;
  result.written = cta.local_written + thread * (cta.local_stride / 64);
  result.first = offset;
  return result;
}

void mark(const PlaceBytes& place, std::uint32_t bytes, bool value) {
  for (std::uint64_t i = place.first; i < place.first + bytes; ++i) {
    const std::uint64_t bit = std::uint64_t{1} << (i % 64);
    place.written[i / 64] = value ? place.written[i / 64] | bit : place.written[i / 64] & ~bit;
  }
}

/// Makes a register undefined in some lanes.
void forget(Frame& frame, const Code::Shadow& shadow, std::uint32_t lanes) {
  Context context;
  context.frame = frame.registers;
  Slot slot;
  slot.lane_bytes = shadow.lane_bytes;
  const std::uint32_t stride = shadow.lane_bytes == 0 ? 4u : shadow.lane_bytes * kLanes;
  for (std::uint32_t at = 0; at < shadow.bytes; at += stride) {
    slot.offset = shadow.offset + at;
    for_each_lane(lanes, [&](unsigned lane) {
      set_lane(context, slot, lane, 0);
      if (shadow.lane_bytes == 16) context.lanes<std::uint64_t>(slot.offset)[2 * lane + 1] = 0;
    });
  }
}

/// A mask of the bytes of `bits` that are all ones.
std::uint64_t full_bytes(std::uint64_t bits) {
  std::uint64_t mask = 0;
  for (unsigned i = 0; i < 8; ++i) {
    if ((bits >> (8 * i) & 0xff) == 0xff) mask |= std::uint64_t{1} << i;
  }
  return mask;
}

/// Copies values from places of one activation to places of another, for some lanes.
void transfer(Warp& warp, std::uint32_t lanes, const Frame& from,
              const std::vector<ValuePlace>& sources, const Frame& to,
              const std::vector<ValuePlace>& targets) {
  const Cta& cta = *warp.cta;
  Context source_context;
  source_context.frame = from.registers;
  Context target_context;
  target_context.frame = to.registers;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const ValuePlace& source = sources[i];
    const ValuePlace& target = targets[i];
    const std::uint32_t bytes = std::min(source.bytes, target.bytes);
    for_each_lane(lanes, [&](unsigned lane) {
      const std::uint64_t defined =
          source.shadow.present() ? get_lane(source_context, source.shadow, lane) : kDefined;
      if (source.slot.present() && target.slot.present()) {
        set_lane(target_context, target.slot, lane, get_lane(source_context, source.slot, lane));
        if (target.shadow.present()) set_lane(target_context, target.shadow, lane, defined);
        return;
      }
      if (source.slot.present()) {
        const std::uint64_t value = get_lane(source_context, source.slot, lane);
        const PlaceBytes place = memory_of(cta, warp, lane, to.local_base + target.offset);
        std::memcpy(place.memory, &value, std::min<std::size_t>(bytes, sizeof value));
        put_written(place.written, place.first, full_bytes(defined), std::clamp(bytes, 1u, 8u));
        return;
      }
      const PlaceBytes place = memory_of(cta, warp, lane, from.local_base + source.offset);
      if (target.slot.present()) {
        std::uint64_t value = 0;
        std::memcpy(&value, place.memory, std::min<std::size_t>(bytes, sizeof value));
        set_lane(target_context, target.slot, lane, value);
        // Undefined bits of values passed in memory are not tracked.
        if (target.shadow.present()) set_lane(target_context, target.shadow, lane, kDefined);
        return;
      }
      const PlaceBytes target_place = memory_of(cta, warp, lane, to.local_base + target.offset);
      std::memmove(target_place.memory, place.memory, bytes);
      for (std::uint32_t b = 0; b < bytes; ++b) {
        const std::uint64_t at = place.first + b;
        PlaceBytes one = target_place;
        one.first += b;
        mark(one, 1, (place.written[at / 64] >> (at % 64) & 1u) != 0);
      }
    });
  }
}

}  // namespace

Frame* acquire_frame(Warp& warp, const Code& code, std::uint32_t local_base) {
  const auto free = std::ranges::find_if(warp.free_frames,
                                         [&](const Frame* frame) { return frame->code == &code; });
  if (free != warp.free_frames.end()) {
    Frame* frame = *free;
    warp.free_frames.erase(free);
    fill_frame(warp, *frame, local_base, false);
    // No rule checks for an undefined carry: make it 0, not that of an earlier block.
    const FrameHead head;
    std::memcpy(frame->registers, &head, sizeof head);
    for (const Code::Shadow& shadow : code.shadows) {
      std::memset(frame->registers + shadow.offset, 0, shadow.bytes);
    }
    return frame;
  }
  Frame& result = warp.frames.emplace_back();
  result.code = &code;
  result.registers =
      static_cast<std::byte*>(::operator new (code.frame_bytes, std::align_val_t{64}));
  std::memset(result.registers, 0, code.frame_bytes);
  const FrameHead head;
  std::memcpy(result.registers, &head, sizeof head);
  fill_frame(warp, result, local_base, true);
  return &result;
}

/// The activation of other lanes at the same call of the same caller, or nullptr.
static Frame* find_activation(Warp& warp, const Code& callee, const Frame& caller,
                              std::uint32_t detail) {
  const auto found = std::ranges::find_if(warp.frames, [&](const Frame& frame) {
    return frame.lanes != 0 && frame.code == &callee && frame.caller == &caller &&
           frame.call_detail == detail;
  });
  return found == warp.frames.end() ? nullptr : &*found;
}

bool enter_function(Warp& warp, Split& split, const Code& callee) {
  Cta& cta = *warp.cta;
  Frame& caller = *split.frame;
  const Code& code = *caller.code;
  const std::uint32_t base = caller.local_base + std::max(code.local_bytes, kCallBytes);
  const std::uint32_t detail = code.segments[split.segment].detail;
  if (base + callee.local_bytes > cta.local_stride) {
    Context context = context_of(warp, split);
    const Step& step = code.steps[code.segments[split.segment].control];
    cta.grid->reporter->report(
        context, step.statement, Rule::StackOverflow,
        static_cast<unsigned>(std::countr_zero(split.mask)), [&] {
          return FindingText{
              format_text("calling '{}' at depth {} needs {} of local memory; a thread has {}",
                          cta.grid->image->module.text(callee.function->name), caller.depth + 1,
                          count_text(base + callee.local_bytes, "byte"), cta.local_stride),
              {"bound the recursion, or raise the stack (Options::stack_bytes)"}};
        });
    kill(cta);
    return false;
  }
  // Diverged lanes that execute the same call one after another share an activation, in which they
  // can reconverge.
  Frame* frame = warp.splits.size() > 1 ? find_activation(warp, callee, caller, detail) : nullptr;
  if (frame != nullptr) {
    reinterpret_cast<FrameHead*>(frame->registers)->carry &= ~split.mask;
    for (const Code::Shadow& shadow : callee.shadows) forget(*frame, shadow, split.mask);
  } else {
    frame = acquire_frame(warp, callee, base);
    frame->caller = &caller;
    frame->return_segment = code.segments[split.segment].next;
    frame->call_detail = detail;
    frame->lanes = 0;
    frame->depth = caller.depth + 1;
  }
  frame->lanes |= split.mask;
  for_each_lane(split.mask, [&](unsigned lane) {
    mark(memory_of(cta, warp, lane, base), callee.local_bytes, false);
  });
  transfer(warp, split.mask, caller, code.controls[detail].arguments, *frame, callee.parameters);
  split.frame = frame;
  split.segment = callee.entry;
  return true;
}

void leave_function(Warp& warp, Split& split) {
  Frame* frame = split.frame;
  Frame* caller = frame->caller;
  transfer(warp, split.mask, *frame, frame->code->returns, *caller,
           caller->code->controls[frame->call_detail].returns);
  frame->lanes &= ~split.mask;
  split.frame = caller;
  split.segment = frame->return_segment;
  if (frame->lanes == 0) warp.free_frames.push_back(frame);
}

}  // namespace ptxgen::inline v0::emulator
