// src/analysis/liveness.cpp - live registers and register pressure
#include "ptxgen/analysis/liveness.hpp"
#include "support/count.hpp"

#include <algorithm>
#include <bit>
#include <span>

namespace ptxgen::inline v0::analysis {

using namespace ptx;

namespace {

using Use = RegisterUses::Use;

// Sixty-four registers at a time: at the end of which blocks they are live.
class Groups {
 public:
  Groups(const Function& function, const Cfg& cfg, const RegisterIndex& index)
      : cfg_(cfg),
        uses_(function, index),
        returned_(index.size(), false),
        live_in_(cfg.exit() + std::size_t{1}, 0),
        live_out_(live_in_.size(), 0),
        killed_(live_in_.size(), 0),
        touched_(live_in_.size(), false) {
    for (const Variable& variable : function.returns) {
      if (variable.space != Space::Register) continue;
      const std::uint32_t reg = index.find({variable.decl, 0});
      if (reg != kNone) returned_[reg] = true;
    }
  }

  [[nodiscard]] std::span<const Use> uses(std::uint32_t reg) const { return uses_.of(reg); }
  // Of the group that was solved last, by its registers' places in it.
  [[nodiscard]] std::uint64_t live_in(std::uint32_t block) const { return live_in_[block]; }
  [[nodiscard]] std::uint64_t live_out(std::uint32_t block) const { return live_out_[block]; }
  [[nodiscard]] std::span<const std::uint32_t> blocks() const { return blocks_; }

  void solve(std::uint32_t first, std::uint32_t end) {
    for (const std::uint32_t block : blocks_) {
      live_in_[block] = live_out_[block] = killed_[block] = 0;
      touched_[block] = false;
    }
    blocks_.clear();
    for (std::uint32_t reg = first; reg < end; ++reg) {
      const std::uint64_t bit = std::uint64_t{1} << (reg - first);
      if (returned_[reg] && cfg_.reachable(cfg_.exit())) want(cfg_.exit(), bit);
      for (const Use& use : uses_.of(reg)) {
        const std::uint32_t block = cfg_.block_of(use.statement);
        if (!cfg_.reachable(block) || (killed_[block] & bit) != 0) continue;
        touch(block);
        if (!use.write) want(block, bit);
        if (use.write && use.full && !use.guarded) killed_[block] |= bit;
      }
    }
    while (!open_.empty()) {
      const std::uint32_t block = open_.back();
      open_.pop_back();
      for (const std::uint32_t before : cfg_.predecessors(block)) {
        if (!cfg_.reachable(before)) continue;
        touch(before);
        live_out_[before] |= live_in_[block];
        want(before, live_in_[block] & ~killed_[before]);
      }
    }
    std::sort(blocks_.begin(), blocks_.end());
  }

 private:
  void touch(std::uint32_t block) {
    if (touched_[block]) return;
    touched_[block] = true;
    blocks_.push_back(block);
  }
  void want(std::uint32_t block, std::uint64_t bits) {
    touch(block);
    if ((bits & ~live_in_[block]) == 0) return;
    live_in_[block] |= bits;
    open_.push_back(block);
  }

  const Cfg& cfg_;
  RegisterUses uses_;
  std::vector<bool> returned_;
  std::vector<std::uint64_t> live_in_, live_out_, killed_;
  std::vector<bool> touched_;
  std::vector<std::uint32_t> blocks_, open_;
};

// Calls `fn(from, to)` for runs of statements of a block after which a register is live or in
// which it is written. `uses` are its uses in the block.
template <class Fn>
void for_each_run(std::span<const Use> uses, const Block& block, bool live_out, Fn&& fn) {
  bool live = live_out;
  std::uint32_t end = block.end;  // the run goes on to here
  for (std::size_t u = uses.size(); u-- > 0;) {
    const Use& use = uses[u];
    if (!use.write) {
      if (!live) end = use.statement;
      live = true;
      continue;
    }
    // Named twice, it is written once.
    if (u + 1 < uses.size() && uses[u + 1].write && uses[u + 1].statement == use.statement)
      continue;
    if (!live) {
      fn(use.statement, use.statement + 1);
    } else if (use.full && !use.guarded) {
      fn(use.statement, end);
      live = false;
    }
  }
  if (live) fn(block.first, end);
}

// The uses of a register, block by block.
template <class Fn>
void for_each_block(std::span<const Use> uses, const Cfg& cfg, Fn&& fn) {
  for (std::size_t begin = 0; begin < uses.size();) {
    const std::uint32_t block = cfg.block_of(uses[begin].statement);
    std::size_t end = begin;
    while (end < uses.size() && cfg.block_of(uses[end].statement) == block) ++end;
    if (cfg.reachable(block)) fn(block, uses.subspan(begin, end - begin));
    begin = end;
  }
}

}  // namespace

std::string_view name(RegisterClass of) noexcept {
  constexpr std::string_view kNames[kRegisterClasses] = {"predicate", "16-bit", "32-bit", "64-bit",
                                                         "128-bit"};
  return kNames[static_cast<std::size_t>(of)];
}

RegisterClass register_class(Type type) noexcept {
  if (kind(type) == TypeKind::Predicate) return RegisterClass::Predicate;
  const unsigned width = bits(type);
  return width <= 16   ? RegisterClass::Bits16
         : width <= 32 ? RegisterClass::Bits32
         : width <= 64 ? RegisterClass::Bits64
                       : RegisterClass::Bits128;
}

namespace {

// The pressure by statement: changes from statement to statement, and registers live throughout a
// block.
struct PressureChanges {
  std::vector<std::array<std::int32_t, kRegisterClasses>> change;
  std::vector<Pressure> through;

  void add_group(const Function& function, const Cfg& cfg, const RegisterIndex& index,
                 Groups& groups, std::uint32_t first, std::uint32_t end) {
    groups.solve(first, end);
    std::array<std::uint64_t, kRegisterClasses> of_class{};
    std::uint64_t vectors = 0;
    for (std::uint32_t reg = first; reg < end; ++reg) {
      const RegisterDecl& decl = function.registers[index[reg].decl.value];
      const std::uint64_t bit = std::uint64_t{1} << (reg - first);
      const auto c = static_cast<std::size_t>(register_class(decl.type));
      of_class[c] |= bit;
      if (decl.vector > 1) vectors |= bit;
      // In blocks that use it the runs are counted; elsewhere it is live throughout or not at all.
      for_each_block(groups.uses(reg), cfg, [&](std::uint32_t block, std::span<const Use> uses) {
        const bool live = (groups.live_out(block) & bit) != 0;
        if (live) through[block].registers[c] -= decl.vector;
        for_each_run(uses, cfg.blocks()[block], live, [&](std::uint32_t from, std::uint32_t to) {
          change[from][c] += decl.vector;
          change[to][c] -= decl.vector;
        });
      });
    }
    for (const std::uint32_t block : groups.blocks()) {
      if (block == cfg.exit()) continue;
      const std::uint64_t live = groups.live_out(block);
      for (std::size_t c = 0; c < kRegisterClasses; ++c)
        through[block].registers[c] +=
            static_cast<std::uint32_t>(std::popcount(live & of_class[c]));
      for (std::uint64_t left = live & vectors; left != 0; left &= left - 1) {
        const Register reg = index[first + static_cast<std::uint32_t>(std::countr_zero(left))];
        const RegisterDecl& decl = function.registers[reg.decl.value];
        through[block].registers[static_cast<std::size_t>(register_class(decl.type))] +=
            decl.vector - 1u;
      }
    }
  }
};

// A loop's maximum includes those of its inner loops.
void include_inner_loops(std::vector<PressurePoint>& maximum, const Cfg& cfg) {
  for (std::size_t loop = maximum.size(); loop-- > 0;) {
    const std::uint32_t around = cfg.loops().loops()[loop].parent;
    if (around == kNoNode) continue;
    const PressurePoint& inner = maximum[loop];
    PressurePoint& outer = maximum[around];
    const std::uint32_t words = inner.pressure.words(), best = outer.pressure.words();
    if (words > best || (words == best && inner.statement < outer.statement)) outer = inner;
  }
}

}  // namespace

Liveness::Liveness(const Function& function, const Cfg& cfg, const RegisterIndex& index) {
  const auto statements = static_cast<std::uint32_t>(function.body.size());
  PressureChanges changes{
      std::vector<std::array<std::int32_t, kRegisterClasses>>(statements + std::size_t{1}),
      std::vector<Pressure>(cfg.blocks().size())};
  Groups groups(function, cfg, index);
  for (std::uint32_t first = 0; first < index.size(); first += 64) {
    changes.add_group(function, cfg, index, groups, first, std::min(index.size(), first + 64));
  }

  pressure_.resize(statements);
  loop_maximum_.resize(cfg.loops().loops().size());
  std::array<std::int32_t, kRegisterClasses> now{};
  const auto raise = [](PressurePoint& point, std::uint32_t statement, const Pressure& pressure,
                        std::uint32_t value, std::uint32_t best) {
    if (value > best) point = {statement, pressure};
  };
  for (std::uint32_t i = 0; i < statements; ++i) {
    const std::uint32_t block = cfg.block_of(i);
    Pressure& pressure = pressure_[i];
    for (std::size_t c = 0; c < kRegisterClasses; ++c) {
      now[c] += changes.change[i][c];
      pressure.registers[c] =
          changes.through[block].registers[c] + static_cast<std::uint32_t>(now[c]);
      raise(class_maximum_[c], i, pressure, pressure.registers[c],
            class_maximum_[c].pressure.registers[c]);
    }
    raise(maximum_, i, pressure, pressure.words(), maximum_.pressure.words());
    const std::uint32_t loop = cfg.loops().innermost(block);
    if (loop == kNoNode) continue;
    raise(loop_maximum_[loop], i, pressure, pressure.words(), loop_maximum_[loop].pressure.words());
  }
  // The points of classes were recorded before all classes of their pressure were known.
  for (std::size_t c = 0; c < kRegisterClasses; ++c) {
    if (class_maximum_[c].statement != kNone)
      class_maximum_[c].pressure = pressure_[class_maximum_[c].statement];
  }
  include_inner_loops(loop_maximum_, cfg);
}

RegisterSet live_after(const Function& function, const Cfg& cfg, const RegisterIndex& index,
                       std::uint32_t statement) {
  RegisterSet set(index.size());
  const std::uint32_t block = cfg.block_of(statement);
  if (!cfg.reachable(block)) return set;
  Groups groups(function, cfg, index);
  for (std::uint32_t first = 0; first < index.size(); first += 64) {
    const std::uint32_t end = std::min(index.size(), first + 64);
    groups.solve(first, end);
    for (std::uint32_t reg = first; reg < end; ++reg) {
      bool live = (groups.live_out(block) >> (reg - first) & 1) != 0;
      // The first thing after the statement that the block does with it decides.
      for (const Use& use : groups.uses(reg)) {
        if (use.statement <= statement || cfg.block_of(use.statement) != block) continue;
        if (use.write && (!use.full || use.guarded)) continue;
        live = !use.write;
        break;
      }
      if (live) set.insert(reg);
    }
  }
  return set;
}

std::vector<LiveRange> live_ranges(const Function& function, const Cfg& cfg,
                                   const RegisterIndex& index) {
  std::vector<LiveRange> ranges(index.size());
  const auto include = [](LiveRange& range, std::uint32_t statement) {
    range.first = std::min(range.first, statement);
    range.last = std::max(range.last, statement);
  };
  Groups groups(function, cfg, index);
  for (std::uint32_t first = 0; first < index.size(); first += 64) {
    const std::uint32_t end = std::min(index.size(), first + 64);
    groups.solve(first, end);
    for (std::uint32_t reg = first; reg < end; ++reg) {
      for (const Use& use : groups.uses(reg)) include(ranges[reg], use.statement);
    }
    const auto include_all = [&](std::uint64_t live, std::uint32_t statement) {
      for (; live != 0; live &= live - 1) {
        include(ranges[first + static_cast<std::uint32_t>(std::countr_zero(live))], statement);
      }
    };
    for (const std::uint32_t number : groups.blocks()) {
      if (number == cfg.exit()) continue;
      const Block& block = cfg.blocks()[number];
      if (block.first == block.end) continue;
      include_all(groups.live_in(number), block.first);
      include_all(groups.live_out(number), block.end - 1);
    }
  }
  return ranges;
}

std::string to_text(const Liveness& liveness, const Cfg& cfg, const Module& module,
                    const Function& function) {
  const auto point = [&](const PressurePoint& p) {
    if (p.statement == kNone) return std::string("nothing is live");
    std::string text =
        count_text(p.pressure.words(), "word") + " at statement " + std::to_string(p.statement);
    if (const std::uint32_t line = function.body[p.statement].line; line != 0)
      text += " (line " + std::to_string(line) + ")";
    std::string_view separator = ": ";
    for (std::size_t c = 0; c < kRegisterClasses; ++c) {
      if (p.pressure.registers[c] == 0) continue;
      text += std::string(separator) + std::to_string(p.pressure.registers[c]) + " " +
              std::string(name(static_cast<RegisterClass>(c)));
      separator = ", ";
    }
    return text;
  };
  std::string text =
      std::string(module.text(function.name)) + ": " + point(liveness.maximum()) + "\n";
  for (std::uint32_t loop = 0; loop < cfg.loops().loops().size(); ++loop) {
    text += "  loop of block " + std::to_string(cfg.loops().loops()[loop].header) + ": " +
            point(liveness.in_loop(loop)) + "\n";
  }
  return text;
}

}  // namespace ptxgen::inline v0::analysis
