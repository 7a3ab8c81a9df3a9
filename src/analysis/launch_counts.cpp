// src/analysis/launch_counts.cpp - memory requests of a launch, from affine forms
#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "analysis/affine_values.hpp"
#include "analysis/copies.hpp"
#include "analysis/memory_counts.hpp"
#include "ptxgen/analysis/memory_report.hpp"

namespace ptxgen::inline v0::analysis {

using namespace ptx;
using Kind = AffineSymbol::Kind;

namespace {

class Launch {
 public:
  Launch(const Affine& affine, const MemoryReport& report, const LaunchShape& shape,
         std::uint64_t max_steps)
      : affine_(affine),
        cfg_(affine.cfg()),
        function_(affine.function()),
        shape_(shape),
        steps_left_(max_steps),
        values_(affine, Leaf{this}) {
    for (const MemoryAccess& access : report.accesses) add(access);
  }

  LaunchCounts run() {
    if (affine_.block().kind == BlockBounds::Kind::Exact && affine_.block().size != shape_.block)
      fail("the forms are those of a block of another shape");
    find_tracked();
    place_parameters();
    const std::uint64_t threads =
        std::uint64_t{shape_.block[0]} * shape_.block[1] * shape_.block[2];
    for (block_[2] = 0; block_[2] < shape_.grid[2]; ++block_[2]) {
      for (block_[1] = 0; block_[1] < shape_.grid[1]; ++block_[1]) {
        for (block_[0] = 0; block_[0] < shape_.grid[0]; ++block_[0]) {
          for (std::uint64_t first = 0; first < threads && result_.reason.empty(); first += 32)
            run_warp(first,
                     static_cast<std::uint32_t>(std::min<std::uint64_t>(32, threads - first)));
        }
      }
    }
    result_.complete = result_.reason.empty();
    for (AccessCounts& counts : result_.accesses) {
      if (!result_.complete) counts.reason = result_.reason;
      counts.exact = counts.reason.empty();
    }
    return std::move(result_);
  }

 private:
  struct Leaf {
    const Launch* launch;
    std::optional<std::int64_t> operator()(std::uint32_t symbol) const {
      return launch->leaf(symbol);
    }
  };
  struct Access {
    AffineForm address, guard;
    AffineForm size;  // of a copy of which lanes say how much; what it means, `copy` says
    std::optional<Copy> copy;
    Space space = Space::Global;
    std::uint32_t bytes = 0;
    std::size_t counts = 0;  // in made_.accesses
  };
  struct Lane {
    bool present = false;
    std::uint32_t at = 0;  // the block that it reaches next, or the exit
    std::array<std::uint32_t, 3> thread{};
    std::vector<std::int64_t> iterations;             // of each loop
    std::vector<std::optional<std::int64_t>> phis;    // of each tracked phi: its value
    std::vector<std::optional<std::uint64_t>> rests;  // and less what is kept in words
  };

  void fail(std::string reason) {
    if (result_.reason.empty()) result_.reason = std::move(reason);
  }

  void add(const MemoryAccess& access) {
    AccessCounts counts;
    counts.statement = access.statement;
    const bool bulk = access.copy == CopyKind::Bulk;
    counts.reason =
        (access.bytes == 0 && !bulk) || access.space == Space::Generic ? access.reason : "";
    result_.accesses.push_back(counts);
    if (!counts.reason.empty()) return;
    Access one{access.address, affine_.guard(access.statement), {}, {}, access.space,
               access.bytes,   result_.accesses.size() - 1};
    if (bulk || access.shortened) {
      one.copy = copy_of(function_, function_.body[access.statement]);
      one.size = bulk ? affine_.of(access.statement, *one.copy->size)
                      : source_form(affine_, access.statement, *one.copy);
    }
    accesses_[cfg_.block_of(access.statement)].push_back(std::move(one));
  }

  // --- symbols
  // ------------------------------------------------------------------------------------

  // Phis that are no induction: their values are kept for each lane. Those that decide about an
  // access or a branch, and what they are made of.
  void find_tracked() {
    track_of_.assign(affine_.symbols().size(), kNone);
    std::vector<bool> seen(affine_.symbols().size());
    std::vector<std::uint32_t> open;
    const auto want = [&](const AffineForm& form) {
      for (const AffineTerm& term : form.terms) {
        for (const std::uint32_t factor : term.symbols) {
          if (factor == kNone || seen[factor]) continue;
          seen[factor] = true;
          open.push_back(factor);
        }
      }
    };
    for (const auto& [block, all] : accesses_) {
      for (const Access& access : all) {
        want(access.address);
        want(access.guard);
        want(access.size);
      }
    }
    for (const Block& block : cfg_.blocks()) {
      if (block.terminator != kNone) want(affine_.guard(block.terminator));
    }
    while (!open.empty()) {
      const std::uint32_t number = open.back();
      open.pop_back();
      const AffineSymbol& s = affine_.symbols()[number];
      for (const std::uint32_t operand : s.operands)
        if (operand != kNone) want(affine_.form(operand));
      if (s.kind == Kind::Phi && affine_.expansion(number) != nullptr)
        want(*affine_.expansion(number));
      else if (s.kind == Kind::Phi || s.kind == Kind::Rest)
        track(number, s.id, want);
    }
  }

  template <class Want>
  void track(std::uint32_t number, std::uint32_t version, const Want& want) {
    const auto known = std::ranges::find(tracked_, version);
    track_of_[number] = static_cast<std::uint32_t>(known - tracked_.begin());
    if (known != tracked_.end()) return;
    tracked_.push_back(version);
    rest_forms_.push_back(nullptr);
    phis_of_[affine_.versions()[version].block].push_back(track_of_[number]);
    const AffineForm& own = affine_.unexpanded(version);
    // A phi that turned out equal on all paths has another form.
    if (own.terms.size() == 1 && own.terms[0].symbols[1] == kNone)
      rest_forms_.back() = affine_.expansion(own.terms[0].symbols[0]);
    if (rest_forms_.back() != nullptr) want(*rest_forms_.back());
    for (const std::uint32_t input : affine_.versions().inputs(version))
      if (input != kNone) want(affine_.unexpanded(input));
  }

  void place_parameters() {
    std::uint64_t at = 0;
    for (const Variable& parameter : function_.parameters) {
      const std::uint64_t alignment = natural_alignment(parameter);
      at = (at + alignment - 1) / alignment * alignment;
      parameter_at_.push_back(at);
      at += size_in_bytes(parameter);
    }
  }

  std::optional<std::int64_t> parameter(const AffineSymbol& s) const {
    if (s.id >= parameter_at_.size()) return std::nullopt;
    const std::uint64_t at = parameter_at_[s.id] + s.offset;
    if (at + s.bits / 8 > shape_.parameters.size()) return std::nullopt;
    std::uint64_t value = 0;
    for (unsigned i = s.bits / 8; i-- > 0;)
      value = value << 8 | std::to_integer<std::uint64_t>(shape_.parameters[at + i]);
    return s.is_signed ? signed_bits(value, s.bits) : static_cast<std::int64_t>(value);
  }

  std::optional<std::int64_t> leaf(std::uint32_t number) const {
    const AffineSymbol& s = affine_.symbols()[number];
    const Lane& lane = lanes_[lane_];
    switch (s.kind) {
      case Kind::Thread:
        return lane.thread[s.component];
      case Kind::Block:
        return block_[s.component];
      case Kind::BlockShape:
        return shape_.block[s.component];
      case Kind::GridShape:
        return shape_.grid[s.component];
      case Kind::Lane:
        return lane_;
      case Kind::Parameter:
        return parameter(s);
      case Kind::Iteration:
      case Kind::FinalIteration:
        return lane.iterations[s.id];
      case Kind::Address: {
        if (variable_of(affine_.module(), s.id) == nullptr) return std::nullopt;
        return std::int64_t{1} << 20;
      }
      case Kind::Phi: {
        const AffineForm* form = affine_.expansion(number);
        if (form == nullptr)
          return track_of_[number] == kNone ? std::nullopt : lane.phis[track_of_[number]];
        const auto bits = values_.bits(*form);
        if (!bits) return std::nullopt;
        return s.is_signed ? signed_bits(*bits, s.bits) : static_cast<std::int64_t>(*bits);
      }
      case Kind::Rest: {
        const auto rest = lane.rests[track_of_[number]];
        if (!rest) return std::nullopt;
        return static_cast<std::int64_t>(*rest);
      }
      default:
        return std::nullopt;
    }
  }

  // --- control
  // ------------------------------------------------------------------------------------

  void run_warp(std::uint64_t first, std::uint32_t count) {
    const auto& size = shape_.block;
    lanes_.assign(32, {});
    for (lane_ = 0; lane_ < count; ++lane_) {
      Lane& lane = lanes_[lane_];
      const std::uint64_t thread = first + lane_;
      lane.present = true;
      lane.thread = {static_cast<std::uint32_t>(thread % size[0]),
                     static_cast<std::uint32_t>(thread / size[0] % size[1]),
                     static_cast<std::uint32_t>(thread / size[0] / size[1])};
      lane.iterations.assign(cfg_.loops().loops().size(), 0);
      lane.phis.resize(tracked_.size());
      lane.rests.resize(tracked_.size());
    }
    while (result_.reason.empty()) {
      std::uint32_t next = cfg_.exit();
      for (const Lane& lane : lanes_) {
        if (lane.present && lane.at != cfg_.exit() &&
            (next == cfg_.exit() || cfg_.position(lane.at) < cfg_.position(next)))
          next = lane.at;
      }
      if (next == cfg_.exit()) return;
      if (steps_left_-- == 0) return fail("the launch takes too many steps to follow");
      std::uint32_t mask = 0;
      for (std::uint32_t i = 0; i < 32; ++i)
        if (lanes_[i].present && lanes_[i].at == next) mask |= 1u << i;
      run_block(next, mask);
    }
  }

  void run_block(std::uint32_t block, std::uint32_t mask) {
    const auto accesses = accesses_.find(block);
    if (accesses != accesses_.end()) {
      for (const Access& access : accesses->second) request(access, mask);
    }
    for (std::uint32_t left = mask; left != 0; left &= left - 1) {
      lane_ = static_cast<std::uint32_t>(std::countr_zero(left));
      values_.forget();
      go_on(block);
    }
  }

  std::string place(std::uint32_t statement) const {
    const std::uint32_t line = function_.body[statement].line;
    return line != 0 ? "line " + std::to_string(line) : "statement " + std::to_string(statement);
  }

  void go_on(std::uint32_t block) {
    const std::uint32_t end = cfg_.blocks()[block].terminator;
    const auto ways = cfg_.successors(block);
    if (ways.size() <= 1) return enter(block, ways.empty() ? cfg_.exit() : ways[0]);
    const Instruction& s = function_.body[end];
    if (s.op == Op::brx_idx) return fail("brx.idx in " + place(end) + " is not followed");
    const AffineForm guard = affine_.guard(end);
    const auto taken = values_.bits(guard);
    const bool sure = taken && std::ranges::all_of(guard.assumptions, [&](std::uint32_t a) {
                        return values_.holds(affine_.assumption(a)).value_or(false);
                      });
    if (!sure)
      return fail("the branch in " + place(end) +
                  " depends on more than indices and parameters: " + affine_.to_text(guard));
    enter(block, ways[*taken != 0 ? 0 : 1]);
  }

  void enter(std::uint32_t from, std::uint32_t to) {
    Lane& lane = lanes_[lane_];
    lane.at = to;
    if (to == cfg_.exit()) return;
    // The new values of the phis of `to`, all computed from the old values.
    const auto phis = phis_of_.find(to);
    std::vector<std::optional<std::uint64_t>> values;
    if (phis != phis_of_.end()) {
      const auto predecessors = cfg_.predecessors(to);
      const auto way =
          static_cast<std::size_t>(std::ranges::find(predecessors, from) - predecessors.begin());
      for (const std::uint32_t tracked : phis->second) {
        const std::uint32_t input = affine_.versions().inputs(tracked_[tracked])[way];
        std::optional<std::uint64_t> value;
        if (input != kNone) {
          const AffineForm& form = affine_.unexpanded(input);
          value = values_.bits(form);
          for (const std::uint32_t a : form.assumptions)
            if (!values_.holds(affine_.assumption(a)).value_or(false)) value.reset();
        }
        values.push_back(value);
      }
    }
    const LoopForest& forest = cfg_.loops();
    const std::uint32_t loop = forest.innermost(to);
    if (loop != kNoNode && forest.loops()[loop].header == to) {
      if (forest.contains(loop, from))
        ++lane.iterations[loop];
      else
        lane.iterations[loop] = 0;
    }
    if (phis == phis_of_.end()) return;
    values_.forget();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint32_t tracked = phis->second[i];
      lane.phis[tracked].reset();
      lane.rests[tracked].reset();
      if (!values[i]) continue;
      const AffineForm& own = affine_.unexpanded(tracked_[tracked]);
      const AffineSymbol& phi = affine_.symbols()[own.terms[0].symbols[0]];
      lane.phis[tracked] =
          phi.is_signed ? signed_bits(*values[i], phi.bits) : static_cast<std::int64_t>(*values[i]);
      if (rest_forms_[tracked] != nullptr)
        lane.rests[tracked] = rest(tracked, static_cast<std::uint64_t>(*lane.phis[tracked]));
    }
    values_.forget();
  }

  // The phi without the terms that its form keeps.
  std::optional<std::uint64_t> rest(std::uint32_t tracked, std::uint64_t value) {
    AffineForm words = *rest_forms_[tracked];
    std::erase_if(words.terms, [&](const AffineTerm& term) {
      return affine_.symbols()[term.symbols[0]].kind == Kind::Rest &&
             affine_.symbols()[term.symbols[0]].id == tracked_[tracked];
    });
    const auto kept = values_.sum_of(words);
    if (!kept) return std::nullopt;
    return value - *kept;
  }

  // --- requests
  // -----------------------------------------------------------------------------------

  void request(const Access& access, std::uint32_t mask) {
    AccessCounts& counts = result_.accesses[access.counts];
    if (!counts.reason.empty()) return;
    std::map<std::uint32_t, std::vector<LaneAddress>> groups;  // by how many bytes lanes ask for
    for (std::uint32_t left = mask; left != 0; left &= left - 1) {
      lane_ = static_cast<std::uint32_t>(std::countr_zero(left));
      values_.forget();
      const auto makes = values_.bits(access.guard);
      if (!makes || !hold(access.guard)) {
        counts.reason = "its guard depends on more than indices and parameters: " +
                        affine_.to_text(access.guard);
        return;
      }
      if (*makes == 0) continue;
      const auto address = values_.bits(access.address);
      if (!address) {
        counts.reason = "its address depends on more than indices and parameters: " +
                        affine_.address_text(access.address);
        return;
      }
      if (!hold(access.address)) {
        counts.reason = "a part of its address wraps around: " + affine_.to_text(access.address);
        return;
      }
      std::uint32_t bytes = access.bytes;
      if (access.copy) {
        const auto size = values_.bits(access.size);
        if (!size) {
          counts.reason = "how many bytes it copies depends on more than indices and parameters: " +
                          affine_.to_text(access.size);
          return;
        }
        if (!hold(access.size)) {
          counts.reason = "a part of its size wraps around: " + affine_.to_text(access.size);
          return;
        }
        bytes =
            access.copy->bulk ? static_cast<std::uint32_t>(*size) : access.copy->bytes_read(*size);
      }
      if (access.copy && access.copy->bulk)
        add(counts, count_range(*address, bytes), bytes);
      else if (bytes != 0)
        groups[bytes].push_back({lane_, *address});
    }
    for (const auto& [bytes, lanes] : groups)
      add(counts, count_request(access.space, lanes, bytes), lanes.size() * bytes);
  }

  static void add(AccessCounts& counts, const RequestFigures& figures, std::uint64_t bytes) {
    ++counts.requests;
    counts.sectors += figures.sectors;
    counts.ideal_sectors += figures.ideal_sectors();
    counts.wavefronts += figures.wavefronts;
    counts.ideal_wavefronts += figures.phases;
    counts.bytes += bytes;
  }

  bool hold(const AffineForm& form) {
    return std::ranges::all_of(form.assumptions, [&](std::uint32_t a) {
      return values_.holds(affine_.assumption(a)).value_or(false);
    });
  }

  const Affine& affine_;
  const Cfg& cfg_;
  const Function& function_;
  const LaunchShape& shape_;
  std::uint64_t steps_left_;
  LaunchCounts result_;
  std::map<std::uint32_t, std::vector<Access>> accesses_;        // of each block
  std::map<std::uint32_t, std::vector<std::uint32_t>> phis_of_;  // of each block: tracked ones
  std::vector<std::uint32_t> tracked_;                           // versions
  std::vector<const AffineForm*> rest_forms_;
  std::vector<std::uint32_t> track_of_;  // of each symbol
  std::vector<std::uint64_t> parameter_at_;
  std::array<std::uint32_t, 3> block_{};
  std::vector<Lane> lanes_;
  std::uint32_t lane_ = 0;
  mutable AffineValues<Leaf> values_;
};

}  // namespace

LaunchCounts count_accesses(const Affine& affine, const MemoryReport& report,
                            const LaunchShape& launch, std::uint64_t max_steps) {
  return Launch(affine, report, launch, max_steps).run();
}

}  // namespace ptxgen::inline v0::analysis
