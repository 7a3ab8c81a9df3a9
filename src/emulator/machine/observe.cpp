// src/emulator/machine/observe.cpp - what an observer sees of a launch
#include "emulator/machine/observe.hpp"

#include <algorithm>

#include "emulator/machine/warp.hpp"
#include "emulator/report/report.hpp"
#include "support/numbers.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

/// The element that `.x`, `.y`, `.z` or `.w` at the end of a name means, from 1; 0 for none. Cuts
/// it off.
std::uint8_t cut_element(std::string_view& name) {
  constexpr std::string_view kElements = "xyzw";
  if (name.size() < 2 || name[name.size() - 2] != '.') return 0;
  const std::size_t found = kElements.find(name.back());
  if (found == kElements.npos) return 0;
  name.remove_suffix(2);
  return static_cast<std::uint8_t>(found + 1);
}

/// The number of a register of that name in a declaration, or kNoIndex.
std::uint32_t number_in(const ptx::RegisterDecl& decl, std::string_view declared,
                        std::string_view name) {
  if (!decl.numbered) return declared == name ? 0 : kNoIndex;
  if (!name.starts_with(declared)) return kNoIndex;
  const auto number = parse_number<std::uint32_t>(name.substr(declared.size()), 10);
  return number && *number < decl.count ? *number : kNoIndex;
}

std::uint32_t lane_bytes_of(const ptx::RegisterDecl& decl) {
  if (ptx::kind(decl.type) == ptx::TypeKind::Predicate) return 0;
  const unsigned bits = ptx::bits(decl.type);
  return bits <= 32 ? 4 : bits / 8;
}

LaneGroup::State state_of(const Split& split, const Context& context) {
  if (&split == context.split) return LaneGroup::State::Running;
  switch (split.state) {
    case Split::State::Barrier:
      return LaneGroup::State::Barrier;
    case Split::State::WarpSync:
      return LaneGroup::State::Lanes;
    case Split::State::Warpgroup:
      return LaneGroup::State::Warpgroup;
    case Split::State::Ready:
      break;
  }
  return LaneGroup::State::Ready;
}

/// The statement that a split executes next: the first of its segment, or the one it waits at.
std::uint32_t next_statement(const Split& split) {
  const Code& code = *split.frame->code;
  const Segment& segment = code.segments[split.segment];
  if (segment.instructions == 0 || split.state != Split::State::Ready) return statement_of(split);
  return code.first_statement + code.segment_statements[segment.first_statement];
}

}  // namespace

ObservedCode::ObservedCode(const Code& code) : code_(code), index_(*code.function) {
  const ptx::Function& function = *code.function;
  ranges_ = analysis::live_ranges(function, analysis::Cfg(function), index_);
  guards_.resize(function.body.size());
  for (std::size_t i = 0; i < function.body.size(); ++i) {
    const ptx::Guard& guard = function.body[i].guard;
    if (!guard.present()) continue;
    const std::uint32_t number = index_.find(guard.predicate);
    if (number == ptx::kNone) continue;
    guards_[i] = {code.register_places[number].offset, guard.negated ? 0xffffffffu : 0u};
  }
}

std::uint32_t ObservedCode::executing(const Context& context,
                                      std::uint32_t statement) const noexcept {
  const Guard& guard = guards_[statement];
  if (guard.offset == kNoIndex) return context.active;
  return context.active & (context.predicate(guard.offset) ^ guard.flip);
}

std::vector<ObservedCode::Named> ObservedCode::find(const ptx::Module& module,
                                                    std::string_view name) const {
  std::vector<Named> found;
  const ptx::Function& function = *code_.function;
  const auto add = [&](std::string_view of, std::uint8_t element) {
    for (std::uint32_t d = 0; d < function.registers.size(); ++d) {
      const ptx::RegisterDecl& decl = function.registers[d];
      if (element > decl.vector || (element == 0 && decl.vector > 1)) continue;
      const std::uint32_t index = number_in(decl, module.text(decl.name), of);
      if (index == kNoIndex) continue;
      const std::uint32_t number = index_.find({{d}, index});
      if (number == ptx::kNone) continue;
      if (code_.register_places[number].offset == kNoIndex) continue;
      found.push_back({number, element == 0 ? std::uint8_t{1} : element});
    }
  };
  add(name, 0);
  std::string_view vector = name;
  if (const std::uint8_t element = cut_element(vector); element != 0) add(vector, element);
  return found;
}

bool ObservedCode::holds_value(std::uint32_t number, std::uint32_t statement) const {
  if (!code_.register_places[number].shared) return true;
  const analysis::LiveRange& range = ranges_[number];
  if (statement < range.first || statement > range.last) return false;
  if (statement > range.first) return true;
  // Before the statement that writes it first, the place may hold another register.
  return std::ranges::none_of(index_.accesses(statement), [&](const analysis::NumberedAccess& a) {
    return a.reg == number && a.write;
  });
}

RegisterLanes ObservedCode::lanes(const ptx::Module& module, const Context& context,
                                  std::uint32_t statement, std::string_view name) {
  auto at = names_.find(name);
  if (at == names_.end()) at = names_.emplace(std::string(name), find(module, name)).first;
  RegisterLanes unknown;
  for (const Named& named : at->second) {
    if (holds_value(named.number, statement)) return read(context, named);
    unknown.type = code_.function->type_of(index_[named.number]);
  }
  return unknown;
}

RegisterLanes ObservedCode::read(const Context& context, const Named& named) const {
  const ptx::RegisterDecl& decl = code_.function->registers[index_[named.number].decl.value];
  RegisterLanes result;
  result.type = decl.type;
  Slot slot;
  slot.lane_bytes = static_cast<std::uint8_t>(lane_bytes_of(decl));
  const unsigned first_byte = (named.element - 1u) * slot.lane_bytes * kLanes;
  slot.offset = code_.register_places[named.number].offset + first_byte;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    result.low[lane] = get_lane(context, slot, lane);
    if (slot.lane_bytes == 16) {
      result.high[lane] = context.lanes<std::uint64_t>(slot.offset)[2 * lane + 1];
    }
  }
  result.known = context.warp->lanes &
                 defined_lanes(context, named.number, first_byte, slot.lane_bytes * kLanes);
  return result;
}

/// Lanes of which all bits are defined, as far as they are tracked (TrackDetail).
std::uint32_t ObservedCode::defined_lanes(const Context& context, std::uint32_t number,
                                          unsigned first_byte, unsigned bytes) const {
  const std::uint32_t offset = code_.register_places[number].offset;
  const auto shadow = std::ranges::find_if(
      code_.shadows, [&](const Code::Shadow& each) { return each.offset == offset + each.bytes; });
  if (shadow == code_.shadows.end()) return 0xffffffffu;
  const std::byte* const bits = context.frame + shadow->offset + first_byte;
  std::uint32_t defined = 0;
  if (bytes == 0) {
    std::memcpy(&defined, bits, sizeof defined);
    return defined;
  }
  const unsigned width = ptx::bits(code_.function->type_of(index_[number]));
  const unsigned lane_bytes = bytes / kLanes;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    bool all = true;
    for (unsigned byte = 0; byte < lane_bytes && 8 * byte < width; ++byte) {
      all &= bits[lane * lane_bytes + byte] == std::byte{0xff};
    }
    if (all) defined |= 1u << lane;
  }
  return defined;
}

ObservedCode& Observation::code_of(const Code& code) const {
  std::unique_ptr<ObservedCode>& code_view = codes_[code.index];
  if (!code_view) code_view = std::make_unique<ObservedCode>(code);
  return *code_view;
}

bool Observation::before(const Context& context, std::uint32_t statement) {
  const std::uint32_t executing = code_of(*context.code).executing(context, statement);
  const bool goes_on = observer_.before(Moment(*this, context, statement, executing));
  stopped_ |= !goes_on;
  ++number_;
  return goes_on;
}

const Step* run_observed_steps(Context& context, const Step* step) {
  const Code& code = *context.code;
  const Segment& segment = code.segments[context.split->segment];
  const Step* const end = code.steps.data() + segment.control;
  for (std::uint32_t i = 0; i < segment.instructions; ++i) {
    const std::uint32_t statement = code.segment_statements[segment.first_statement + i];
    if (!context.grid->observation->before(context, statement)) {
      context.cta->killed = true;
      return end;
    }
    for (; step != end && step->statement == code.first_statement + statement; ++step) {
      step->run(context, *step);
    }
  }
  for (; step != end; ++step) step->run(context, *step);
  return end;
}

std::uint64_t Moment::number() const noexcept { return observation_->number(); }
const ptx::Module& Moment::module() const noexcept { return observation_->image().module; }
const ptx::Function& Moment::function() const noexcept { return *context_->code->function; }
const ptx::Instruction& Moment::instruction() const noexcept {
  return context_->code->function->body[statement_];
}
std::uint32_t Moment::call_depth() const noexcept { return context_->activation->depth; }
Dim3 Moment::grid_size() const noexcept { return context_->grid->grid; }
Dim3 Moment::block_size() const noexcept { return context_->grid->block; }
Dim3 Moment::block() const noexcept { return context_->cta->id; }
std::uint64_t Moment::block_number() const noexcept { return context_->cta->linear; }
std::uint32_t Moment::warp() const noexcept { return context_->warp->index; }
std::uint32_t Moment::active() const noexcept { return context_->active; }

std::vector<WarpState> Moment::warps() const {
  std::vector<WarpState> all;
  const Image& image = observation_->image();
  for (const Warp& warp : context_->cta->warps) {
    WarpState& state = all.emplace_back();
    state.lanes = warp.lanes;
    state.exited = warp.exited;
    state.instructions = warp.instructions;
    for (const Split& split : warp.splits) {
      LaneGroup& group = state.groups.emplace_back();
      group.state = state_of(split, *context_);
      group.lanes = split.mask;
      group.call_depth = split.frame->depth;
      group.line =
          group.state == LaneGroup::State::Running ? line() : image.line(next_statement(split));
      if (group.state == LaneGroup::State::Barrier) group.barrier = split.barrier;
    }
  }
  return all;
}

RegisterLanes Moment::register_lanes(std::string_view name) const {
  return observation_->code_of(*context_->code).lanes(module(), *context_, statement_, name);
}

std::span<const std::byte> Moment::shared() const noexcept {
  return {context_->cta->shared, context_->cta->shared_bytes};
}

bool Moment::shared_written(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  const Cta& cta = *context_->cta;
  if (offset > cta.shared_bytes || bytes > cta.shared_bytes - offset) return false;
  for (std::uint64_t i = offset; i < offset + bytes; ++i) {
    if (((cta.shared_written[i / 64] >> (i % 64)) & 1u) == 0) return false;
  }
  return true;
}

Device::Extent Moment::shared_variable(std::string_view name) const noexcept {
  const Grid& grid = *context_->grid;
  for (const auto& variable : grid.kernel_image->shared_variables) {
    if (variable.name == name) return {variable.offset, variable.bytes};
  }
  // Variables without a size begin where the dynamic memory does.
  const bool dynamic = std::ranges::any_of(module().variables, [&](const ptx::Variable& variable) {
    return variable.space == ptx::Space::Shared && ptx::size_in_bytes(variable) == 0 &&
           module().text(variable.name) == name;
  });
  if (!dynamic) return {};
  return {grid.kernel_image->static_shared_bytes, grid.dynamic_shared_bytes};
}

std::size_t Moment::finding_count() const { return context_->grid->reporter->count(); }
RunFinding Moment::last_finding() const { return context_->grid->reporter->newest(); }

}  // namespace ptxgen::inline v0::emulator
