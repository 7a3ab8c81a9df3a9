// src/analysis/memory_report.cpp - memory traffic of each access
#include "ptxgen/analysis/memory_report.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "analysis/affine_values.hpp"
#include "analysis/copies.hpp"
#include "analysis/facts.hpp"
#include "analysis/memory_counts.hpp"
#include "analysis/uniformity_sources.hpp"
#include "ptxgen/ptx/printer.hpp"

namespace ptxgen::inline v0::analysis {

using namespace ptx;
using Kind = AffineSymbol::Kind;

namespace {

// Whether lanes are served one after another, not by sectors.
bool uses_wavefronts(Space space) { return space == Space::Shared || space == Space::Const; }

double waste(const Spread& taken, std::uint64_t needed) {
  return needed == 0 ? 1 : static_cast<double>(taken.min) / static_cast<double>(needed);
}

std::string opcode_of(const Module& module, const Function& function, const Instruction& s) {
  std::string text = print(module, function, s);
  if (text.starts_with('@')) text.erase(0, text.find(' ') + 1);
  return text.substr(0, text.find_first_of(" ;"));
}

// Bytes apart, whatever symbols are: the address of one lane, less what all lanes share.
struct LaneOffset {
  std::uint32_t lane = 0;
  std::uint64_t own = 0;
  std::vector<std::uint64_t> factors;  // of each multiplier
};

class Reporter {
 public:
  Reporter(const Affine& affine, const MemoryReportOptions& options)
      : affine_(affine),
        module_(affine.module()),
        function_(affine.function()),
        options_(options),
        values_(affine, Leaf{this}) {}

  MemoryReport run() {
    report_.function = module_.text(function_.name);
    choose_block();
    for (std::uint32_t i = 0; i < function_.body.size(); ++i) {
      if (function_.body[i].kind == StatementKind::Instruction &&
          affine_.cfg().reachable(affine_.cfg().block_of(i)))
        look(i);
    }
    return std::move(report_);
  }

 private:
  struct Leaf {
    const Reporter* reporter;
    std::optional<std::int64_t> operator()(std::uint32_t symbol) const {
      return reporter->of_lane(symbol);
    }
  };

  std::optional<std::int64_t> of_lane(std::uint32_t symbol) const {
    const AffineSymbol& s = affine_.symbols()[symbol];
    if (s.kind == Kind::Thread) return thread_[s.component];
    if (s.kind == Kind::Lane) return lane_;
    return std::nullopt;
  }

  void choose_block() {
    BlockBounds bounds = affine_.block();
    // Without a bound: rows of threads, which any warp of a one-dimensional block is.
    if (bounds.kind == BlockBounds::Kind::Unknown) bounds.size = {1024, 1, 1};
    report_.block = largest_block(bounds.size);
    report_.block_assumed = bounds.kind != BlockBounds::Kind::Exact;
  }

  // --- the statement
  // ------------------------------------------------------------------------------

  void look(std::uint32_t statement) {
    const Instruction& s = function_.body[statement];
    const OpInfo& row = info(s.op);
    const bool reads = has(row.flags, Flag::ReadsMemory),
               writes = has(row.flags, Flag::WritesMemory);
    // Waiting threads ask as often as they have to: what objects of mbarriers see is not counted.
    const bool barrier = has(row.flags, Flag::Barrier) || row.mnemonic == "mbarrier";
    if ((!reads && !writes) || barrier) return;
    if (const auto copy = copy_of(function_, s))
      return copy->bulk ? look_at_bulk(statement, *copy) : look_at_copy(statement, *copy);
    const auto operands = function_.operands_of(s);
    const auto memory = std::ranges::find(operands, OperandKind::Memory, &Operand::kind);
    const Space space = space_of(s.get(Field::Space));
    if (memory == operands.end() || space == Space::Param) return;
    MemoryAccess access = begin(statement, *memory, space);
    access.reads = reads;
    access.writes = writes;
    const bool moves = row.mnemonic == "ld" || row.mnemonic == "ldu" || row.mnemonic == "st" ||
                       row.mnemonic == "atom" || row.mnemonic == "red";
    const std::uint32_t element = bytes(s.type());
    // Stores to another block (st.async) and untyped ones (st.bulk) are not requests of lanes.
    if (moves && element != 0 && !has(row.flags, Flag::Asynchronous)) {
      const Modifier vector = s.get(Field::Vector);
      access.vector = vector == Modifier::v2   ? 2
                      : vector == Modifier::v4 ? 4
                      : vector == Modifier::v8 ? 8
                                               : 1;
      access.bytes = element * access.vector;
      count(access, access.bytes);
    } else {
      access.reason = access.opcode + " is not followed";
    }
    finish(std::move(access));
  }

  // Both sides of a cp.async.
  void look_at_copy(std::uint32_t statement, const Copy& copy) {
    MemoryAccess read = begin(statement, *copy.from, copy.from_space);
    read.reads = true;
    read.copy = CopyKind::Lanes;
    read.bytes = copy.lane_bytes();
    if (copy.source != nullptr) {
      const auto known = constant_of(source_form(affine_, statement, copy));
      if (known)
        read.bytes = copy.bytes_read(*known);
      else
        read.shortened = true;
    }
    if (read.bytes != 0) {
      // Fewer bytes still require the alignment of the full size.
      count(read, copy.lane_bytes());
      finish(std::move(read));
    }
    MemoryAccess write = begin(statement, *copy.to, copy.to_space);
    write.writes = true;
    write.copy = CopyKind::Lanes;
    write.bytes = copy.lane_bytes();
    count(write, write.bytes);
    finish(std::move(write));
  }

  void look_at_bulk(std::uint32_t statement, const Copy& copy) {
    const bool reads = copy.from_space == Space::Global, writes = copy.to_space == Space::Global;
    if (!reads && !writes) return;
    const Operand& side = reads ? *copy.from : *copy.to;
    MemoryAccess access = begin(statement, side, Space::Global);
    access.reads = reads || copy.combines;
    access.writes = writes;
    access.copy = CopyKind::Bulk;
    access.lanes = 1;
    count_copy(access, affine_.of(statement, *copy.size));
    finish(std::move(access));
  }

  MemoryAccess begin(std::uint32_t statement, const Operand& memory, Space space) const {
    const Instruction& s = function_.body[statement];
    MemoryAccess access;
    access.statement = statement;
    access.line = s.line;
    access.cpp = module_.site_of(s);
    access.opcode = opcode_of(module_, function_, s);
    access.space = space;
    const std::uint32_t block = affine_.cfg().block_of(statement);
    const LoopForest& loops = affine_.cfg().loops();
    if (const std::uint32_t loop = loops.innermost(block); loop != kNoNode)
      access.depth = loops.loops()[loop].depth;
    access.masked = affine_.uniformity().of_control(block) < Agreement::Warp ||
                    (s.guard.present() && !agrees(affine_.guard(statement)));
    access.address = affine_.of(statement, memory);
    access.address_text = affine_.address_text(access.address);
    for (const std::uint32_t assumption : access.address.assumptions)
      access.assumptions.push_back(affine_.to_text(affine_.assumption(assumption)));
    return access;
  }

  void finish(MemoryAccess access) {
    total(access);
    report_.accesses.push_back(std::move(access));
  }

  bool agrees(const AffineForm& form) const { return affine_.split(form).differing.terms.empty(); }

  void total(const MemoryAccess& access) {
    MemoryTotals& all = report_.total;
    ++all.accesses;
    if (!access.affine()) {
      ++all.unknown;
    } else if (!access.size_text.empty()) {
      ++all.unsized;
    } else if (access.space == Space::Shared) {
      all.bank_conflicts += access.wavefronts.min - access.ideal_wavefronts;
    } else if (access.space != Space::Const) {
      all.bytes_wanted += access.bytes_wanted;
      all.bytes_moved.min += 32 * access.sectors.min;
      all.bytes_moved.max += 32 * access.sectors.max;
    }
  }

  // --- the address
  // --------------------------------------------------------------------------------

  // What a generic address points to; false if that is not known.
  bool find_space(MemoryAccess& access) {
    if (access.space != Space::Generic) return true;
    const std::uint32_t base = affine_.base_term(access.address);
    if (base == kNone) return false;
    const AffineSymbol& s = affine_.symbols()[access.address.terms[base].symbols[0]];
    if (s.kind == Kind::Parameter) {
      access.space = Space::Global;
      return true;
    }
    const Variable* variable = variable_of(module_, s.id);
    if (variable == nullptr) return false;
    access.space = variable->space;
    return true;
  }

  std::string origin(std::uint32_t version) const {
    const Version& v = affine_.versions()[version];
    const std::string name = name_of(module_, function_, affine_.index()[v.reg]);
    if (v.kind != Version::Kind::Write) return name + ", which differs by the way that lanes came";
    const Instruction& result = function_.body[v.statement];
    const std::string place = result.line != 0 ? "in line " + std::to_string(result.line)
                                               : "by statement " + std::to_string(v.statement);
    if (result.kind != StatementKind::Instruction) return name + ", written " + place;
    if (has(info(result.op).flags, Flag::ReadsMemory)) return name + ", loaded " + place;
    return name + ", made by " + opcode_of(module_, function_, result) + ' ' + place;
  }

  // Why the addresses of lanes are unknown with this symbol.
  std::string why(std::uint32_t symbol) const {
    const AffineSymbol& s = affine_.symbols()[symbol];
    if (s.left)
      return "depends on " + affine_.to_text(symbol_form(symbol, s.bits)) +
             ", with which lanes may have left a loop in different iterations";
    if (s.id != kNone && (s.kind == Kind::Value || s.kind == Kind::Phi || s.kind == Kind::Rest))
      return "depends on " + origin(s.id);
    if (s.kind == Kind::Operation) {
      for (const std::uint32_t operand : s.operands) {
        if (operand == kNone) break;
        for (const AffineTerm& term : affine_.form(operand).terms) {
          for (const std::uint32_t factor : term.symbols) {
            if (factor == kNone) continue;
            const AffineSymbol& inner = affine_.symbols()[factor];
            if (inner.agreement < Agreement::Warp) return why(factor);
          }
        }
      }
    }
    return "depends on " + affine_.to_text(symbol_form(symbol, s.bits)) +
           ", which is not a sum of what lanes differ by and what they share";
  }

  // A thread's local memory is its own, but lanes have a variable at the same place in it.
  void share_base(const AffineForm& address, Affine::Parts& parts) const {
    const std::uint32_t base = affine_.base_term(address);
    if (base == kNone) return;
    const AffineTerm term = address.terms[base];
    if (affine_.symbols()[term.symbols[0]].kind != Kind::Address) return;
    if (std::erase(parts.differing.terms, term) != 0) parts.agreeing.terms.push_back(term);
  }

  // The factors of a term on which lanes agree, if the others are numbers of the lane.
  std::optional<std::array<std::uint32_t, 3>> multiplier(const AffineTerm& term,
                                                         std::string& reason) {
    std::array<std::uint32_t, 3> found{kNone, kNone, kNone};
    std::size_t count = 0;
    for (const std::uint32_t factor : term.symbols) {
      if (factor == kNone) break;
      if (affine_.symbols()[factor].agreement >= Agreement::Warp)
        found[count++] = factor;
      else if (!values_.symbol(factor)) {
        reason = why(factor);
        return std::nullopt;
      }
    }
    return found;
  }

  LaneOffset offset(const AffineForm& differing,
                    std::span<const std::array<std::uint32_t, 3>> all) {
    LaneOffset result{lane_, 0, std::vector<std::uint64_t>(all.size())};
    std::string unused;
    for (const AffineTerm& term : differing.terms) {
      const auto of = *multiplier(term, unused);
      auto value = static_cast<std::uint64_t>(term.coefficient);
      for (const std::uint32_t factor : term.symbols) {
        if (factor == kNone) break;
        if (affine_.symbols()[factor].agreement < Agreement::Warp)
          value *= static_cast<std::uint64_t>(*values_.symbol(factor));
      }
      if (of[0] == kNone)
        result.own += value;
      else
        result.factors[static_cast<std::size_t>(std::ranges::find(all, of) - all.begin())] += value;
    }
    return result;
  }

  // --- the figures
  // --------------------------------------------------------------------------------

  // The traffic of all lanes. The hardware requires addresses that are multiples of
  // `alignment`.
  void count(MemoryAccess& access, std::uint32_t alignment) {
    if (!find_space(access)) {
      access.reason = "the state space of the generic address is not known";
      return;
    }
    auto parts = affine_.split(access.address);
    if (access.space == Space::Local) share_base(access.address, parts);
    std::vector<std::array<std::uint32_t, 3>> multipliers;
    thread_ = {};
    lane_ = 0;
    values_.forget();
    for (const AffineTerm& term : parts.differing.terms) {
      const auto of = multiplier(term, access.reason);
      if (!of) return;
      if ((*of)[0] != kNone && std::ranges::find(multipliers, *of) == multipliers.end())
        multipliers.push_back(*of);
    }
    if (!multipliers.empty() && access.space == Space::Shared) {
      access.reason =
          "lanes are " + step_text(parts.differing) + " bytes apart, which is not a constant";
      if (step_text(parts.differing).empty()) access.reason = "lanes are not a constant apart";
      return;
    }
    access.lane_step = step_text(parts.differing);
    access.apart_unknown = !multipliers.empty();
    const Common common{known_alignment(access, parts.agreeing),
                        static_cast<std::uint64_t>(parts.agreeing.constant), alignment};
    const auto& size = report_.block;
    const std::uint64_t threads = std::uint64_t{size[0]} * size[1] * size[2];
    access.lanes = static_cast<std::uint32_t>(std::min<std::uint64_t>(threads, 32));
    bool broadcast = true;
    seen_.clear();
    for (std::uint64_t first = 0; first + access.lanes <= threads; first += 32) {
      std::vector<LaneOffset> lanes;
      for (lane_ = 0; lane_ < access.lanes; ++lane_) {
        const std::uint64_t thread = first + lane_;
        thread_ = {static_cast<std::uint32_t>(thread % size[0]),
                   static_cast<std::uint32_t>(thread / size[0] % size[1]),
                   static_cast<std::uint32_t>(thread / size[0] / size[1])};
        values_.forget();
        lanes.push_back(offset(parts.differing, multipliers));
      }
      if (multipliers.empty() && !unseen(lanes, std::gcd(common.multiple, period(access.space))))
        continue;
      const bool same = std::ranges::all_of(lanes, [&](const LaneOffset& one) {
        return one.own == lanes[0].own && one.factors == lanes[0].factors;
      });
      broadcast = broadcast && same;
      count_warp(access, lanes, multipliers, common, first == 0);
      if (parts.differing.terms.empty()) break;  // all warps are alike
    }
    classify(access, broadcast);
  }

  // What lanes share of an address.
  struct Common {
    std::uint64_t multiple = 0;  // it is one of this, 0 if there is nothing of it,
    std::uint64_t constant = 0;  // and this
    std::uint32_t alignment = 1;
  };

  // Whether no warp before had lanes as far apart, and as far from a multiple of `step`.
  bool unseen(const std::vector<LaneOffset>& lanes, std::uint64_t step) {
    std::vector<std::uint64_t> key{lanes[0].own % step};
    for (const LaneOffset& one : lanes) key.push_back(one.own - lanes[0].own);
    return seen_.insert(std::move(key)).second;
  }

  // A range of global memory that begins at a multiple of 16, as the copy engine requires: at the
  // start of a sector, or in the middle of one.
  void count_copy(MemoryAccess& access, const AffineForm& size) {
    const std::uint64_t step =
        std::gcd(known_alignment(access, access.address), period(Space::Global));
    std::vector<std::uint64_t> starts;
    for (std::uint64_t shift = 0; shift < period(Space::Global); shift += step)
      starts.push_back((static_cast<std::uint64_t>(access.address.constant) + shift) %
                       period(Space::Global));
    const auto possible = [](std::uint64_t start) { return start % 16 == 0; };
    // Where the copy would fault is of no interest, unless it always does.
    if (std::ranges::any_of(starts, possible))
      std::erase_if(starts, [&](std::uint64_t start) { return !possible(start); });
    const auto constant = constant_of(size);
    if (!constant) {
      access.size_text = affine_.to_text(size);
      if (std::ranges::all_of(starts, [](std::uint64_t start) { return start == 0; }))
        access.pattern = AccessPattern::Coalesced;
      else
        access.reason = "copies " + access.size_text +
                        " bytes, which is not a constant, and may begin within a sector";
      return;
    }
    access.bytes = static_cast<std::uint32_t>(*constant);
    bool first = true;
    for (const std::uint64_t start : starts) {
      const RequestFigures figures = count_range(start, access.bytes);
      widen(access.sectors, {figures.sectors, figures.sectors}, first);
      access.ideal_sectors = figures.ideal_sectors();
      access.bytes_wanted = figures.distinct_bytes;
      first = false;
    }
    access.any_warp = access.sectors;
    classify(access, false);
  }

  static void widen(Spread& all, Spread one, bool first) {
    all.min = first ? one.min : std::min(all.min, one.min);
    all.max = std::max(all.max, one.max);
  }

  // One warp: lanes with the same factors are together, each such group anywhere.
  void count_warp(MemoryAccess& access, const std::vector<LaneOffset>& lanes,
                  std::span<const std::array<std::uint32_t, 3>> multipliers, const Common& common,
                  bool first) {
    std::map<std::vector<std::uint64_t>, std::vector<LaneAddress>> groups;
    for (const LaneOffset& one : lanes)
      groups[one.factors].push_back({one.lane, one.own + common.constant});
    Spread sectors, wavefronts;
    std::uint64_t distinct = 0, phases = 0;
    for (auto& [factors, group] : groups) {
      std::uint64_t step = std::gcd(common.multiple, period(access.space));
      for (std::size_t i = 0; i < multipliers.size(); ++i) step = std::gcd(step, factors[i]);
      Spread group_sectors, group_wavefronts;
      bool any = false;
      RequestFigures figures;
      for (const bool aligned : {true, false}) {
        // Where the access would fault is of no interest, unless it always does.
        if (any) break;
        for (std::uint64_t shift = 0; shift < period(access.space); shift += step) {
          std::vector<LaneAddress> moved = group;
          for (LaneAddress& one : moved) one.address += shift + kFar;
          if (aligned && moved[0].address % std::min(common.alignment, 32u) != 0) continue;
          figures = count_request(access.space, moved, access.bytes);
          widen(group_sectors, {figures.sectors, figures.sectors}, !any);
          widen(group_wavefronts, {figures.wavefronts, figures.wavefronts}, !any);
          any = true;
        }
      }
      sectors.min += group_sectors.min;
      sectors.max += group_sectors.max;
      wavefronts.min += group_wavefronts.min;
      wavefronts.max += group_wavefronts.max;
      distinct += figures.distinct_bytes;
      phases += figures.phases;
    }
    const bool by_wavefront = uses_wavefronts(access.space);
    const std::uint64_t ideal_sectors = (distinct + 31) / 32;
    const Spread& taken = by_wavefront ? wavefronts : sectors;
    widen(access.any_warp, taken, first);
    if (!first && waste(taken, by_wavefront ? phases : ideal_sectors) <= access.factor()) return;
    access.sectors = sectors;
    access.wavefronts = wavefronts;
    access.ideal_sectors = ideal_sectors;
    access.ideal_wavefronts = phases;
    access.bytes_wanted = distinct;
  }

  void classify(MemoryAccess& access, bool broadcast) {
    if (broadcast && access.lanes > 1 && access.space != Space::Local)
      access.pattern = AccessPattern::Broadcast;
    else
      access.pattern = access.factor() <= 1 ? AccessPattern::Coalesced : AccessPattern::Strided;
  }

  // The address is a constant and a multiple of this.
  std::uint64_t known_alignment(const MemoryAccess& access, const AffineForm& agreeing) const {
    const std::uint32_t base = affine_.base_term(access.address);
    std::uint64_t known = 0;
    for (const AffineTerm& term : agreeing.terms) {
      std::uint64_t of = 0;
      const bool is_base = base != kNone && term == access.address.terms[base];
      of = is_base ? base_alignment(affine_.symbols()[term.symbols[0]])
                   : static_cast<std::uint64_t>(term.coefficient);
      known = std::gcd(known, of);
    }
    return known;
  }
  std::uint64_t base_alignment(const AffineSymbol& s) const {
    if (s.kind == Kind::Parameter) {
      const Variable& parameter = function_.parameters[s.id];
      return parameter.pointer_alignment != 0 ? parameter.pointer_alignment
                                              : options_.pointer_alignment;
    }
    const Variable* variable = variable_of(module_, s.id);
    return variable == nullptr ? 1 : natural_alignment(*variable);
  }

  // Bytes between a lane and the next: where lanes differ by nothing but a multiple of %tid.x or
  // %laneid.
  std::string step_text(const AffineForm& differing) const {
    AffineForm step;
    for (const AffineTerm& term : differing.terms) {
      AffineTerm rest{term.coefficient, {kNone, kNone, kNone}};
      std::size_t count = 0, indices = 0;
      for (const std::uint32_t factor : term.symbols) {
        if (factor == kNone) break;
        const AffineSymbol& s = affine_.symbols()[factor];
        if (s.kind == Kind::Lane || (s.kind == Kind::Thread && s.component == 0))
          ++indices;
        else if (s.agreement >= Agreement::Warp)
          rest.symbols[count++] = factor;
        else
          return {};
      }
      if (indices != 1) return {};
      AffineForm one;
      if (rest.symbols[0] == kNone)
        one.constant = rest.coefficient;
      else
        one.terms.push_back(rest);
      step = sum(step, one);
    }
    return affine_.to_text(step);
  }

  // Figures are the same for addresses that are so many bytes apart: a sector, or a word, since it
  // does not matter at which bank lanes begin.
  static constexpr std::uint64_t period(Space space) { return space == Space::Global ? 32 : 4; }
  // Offsets may be below 0: addresses are not.
  static constexpr std::uint64_t kFar = std::uint64_t{1} << 40;

  const Affine& affine_;
  const Module& module_;
  const Function& function_;
  const MemoryReportOptions& options_;
  std::array<std::uint32_t, 3> thread_{};
  std::uint32_t lane_ = 0;
  AffineValues<Leaf> values_;
  std::set<std::vector<std::uint64_t>> seen_;
  MemoryReport report_;
};

}  // namespace

MemoryReport memory_report(const Affine& affine, const MemoryReportOptions& options) {
  return Reporter(affine, options).run();
}

MemoryReport memory_report(const Module& module, const Function& function,
                           const MemoryReportOptions& options) {
  // Blocks are taken to be as large as they may be, so that %ntid is a number.
  const BlockBounds bounds = block_bounds(function, {.block = options.block});
  MemoryReportOptions shaped = options;
  shaped.block = bounds.kind == BlockBounds::Kind::Unknown ? std::array<std::uint32_t, 3>{}
                                                           : largest_block(bounds.size);
  Facts facts(module, function, {.block = shaped.block});
  MemoryReport report = memory_report(facts.affine(), shaped);
  report.block_assumed = bounds.kind != BlockBounds::Kind::Exact;
  return report;
}

double MemoryAccess::factor() const noexcept {
  return uses_wavefronts(space) ? waste(wavefronts, ideal_wavefronts)
                                : waste(sectors, ideal_sectors);
}

}  // namespace ptxgen::inline v0::analysis
