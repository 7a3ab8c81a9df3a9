// src/analysis/versions.cpp - static single assignment view of registers
#include "ptxgen/analysis/versions.hpp"

#include <algorithm>
#include <utility>

#include "support/scratch.hpp"

namespace ptxgen::inline v0::analysis {

using namespace ptx;

namespace {

// What `before` keeps for registers with several writes may grow to so many words per statement
// and block; of the registers beyond it tells less.
constexpr std::size_t kLiveBudget = 32;

}  // namespace

// Registers are done one by one. Where a register is live follows from a walk backwards from its
// reads; phis are at the iterated dominance frontier of its writes, as far as it is live there,
// found as Sreedhar and Gao do: from the deepest write upwards, each block looked at once.
class VersionsBuilder {
 public:
  VersionsBuilder(Versions& result, const Function& function, const Cfg& cfg,
                  const RegisterIndex& index)
      : result_(result),
        function_(function),
        cfg_(cfg),
        index_(index),
        nodes_(cfg.exit() + 1),
        depth_(nodes_, 0, &scratch_),
        state_(nodes_, &scratch_) {}

  void build() {
    shape();
    collect();
    ScratchVector<bool> returned(index_.size(), false, &scratch_);
    for (const Variable& variable : function_.returns) {
      if (variable.space != Space::Register) continue;
      const std::uint32_t reg = index_.find({variable.decl, 0});
      if (reg != kNone) returned[reg] = true;
    }
    result_.first_of_reg_.reserve(index_.size() + std::size_t{1});
    result_.first_live_.reserve(index_.size() + std::size_t{1});
    result_.versions_.reserve(function_.body.size() + index_.size());
    result_.first_of_reg_.push_back(0);
    result_.first_live_.push_back(0);
    result_.first_input_.push_back(0);
    result_.one_block_.assign(index_.size(), 0);
    for (std::uint32_t reg = 0; reg < index_.size(); ++reg) {
      number(reg, returned[reg] && cfg_.reachable(cfg_.exit()));
      result_.first_of_reg_.push_back(result_.size());
      result_.first_live_.push_back(static_cast<std::uint32_t>(result_.live_.size()));
    }
    link();
  }

 private:
  struct Event {
    std::uint32_t access;  // in Versions::accesses_
    std::uint32_t statement;
    bool write, partial;
  };
  // What is known of a block while one register is done; counts only if `stamp` is of that one.
  struct State {
    std::uint32_t stamp = 0;
    bool live = false, phi = false, visited = false, banked = false;
    std::uint32_t in = kNone, out = kNone;         // versions
    std::uint32_t child = kNone, sibling = kNone;  // dominated blocks that are live
    std::uint32_t join = kNone;                    // edges to blocks that it does not dominate
  };
  struct Join {
    std::uint32_t to, next;
  };
  // The events of one register in one block.
  struct Part {
    std::uint32_t block, begin, end;
    bool exposed;  // what the block begins with is wanted
    bool writes;
    std::uint32_t in, out;  // versions at its start, and after its last write
  };

  State& at(std::uint32_t node) {
    State& s = state_[node];
    if (s.stamp != stamp_) {
      s = {};
      s.stamp = stamp_;
    }
    return s;
  }

  void shape() {
    const auto blocks = cfg_.blocks();
    result_.tree_ = cfg_.dominators();
    for (std::uint32_t b = 0; b < blocks.size(); ++b) {
      result_.first_statement_.push_back(blocks[b].first);
    }
    const auto deepen = [&](std::uint32_t b) {
      const std::uint32_t above = cfg_.dominators().immediate(b);
      if (above != kNoNode) depth_[b] = depth_[above] + 1;
    };
    for (const std::uint32_t b : cfg_.order()) deepen(b);
    deepen(cfg_.exit());
  }

  // The accesses of each statement, and the events of each register.
  void collect() {
    const auto statements = static_cast<std::uint32_t>(function_.body.size());
    std::vector<Versions::Access>& accesses = result_.accesses_;
    ScratchVector<std::uint32_t> count(index_.size() + std::size_t{1}, 0, &scratch_);
    result_.first_read_.reserve(statements + std::size_t{1});
    result_.first_write_.reserve(statements);
    accesses.reserve(statements * std::size_t{3});
    in_order_.reserve(statements * std::size_t{3});
    for (std::uint32_t i = 0; i < statements; ++i) {
      const bool reachable = cfg_.reachable(cfg_.block_of(i));
      result_.first_read_.push_back(static_cast<std::uint32_t>(accesses.size()));
      if (reachable) add_accesses(i, false);
      result_.first_write_.push_back(static_cast<std::uint32_t>(accesses.size()));
      if (reachable) add_accesses(i, true);
    }
    result_.first_read_.push_back(static_cast<std::uint32_t>(accesses.size()));

    for (const auto& access : accesses) ++count[access.reg + 1];
    for (std::uint32_t r = 0; r < index_.size(); ++r) count[r + 1] += count[r];
    first_event_ = count;
    events_.resize(accesses.size());
    for (const Event& event : in_order_) events_[count[accesses[event.access].reg]++] = event;
  }

  // What a statement reads, or writes: by register, each once.
  void add_accesses(std::uint32_t statement, bool writes) {
    named_.clear();
    for (const NumberedAccess& a : index_.accesses(statement)) {
      if (a.write == writes) named_.push_back(a);
    }
    if (named_.size() > 1) {
      // If a register is named in full and by component, the full access comes first and is kept.
      std::sort(named_.begin(), named_.end(), [](const NumberedAccess& a, const NumberedAccess& b) {
        return a.reg != b.reg ? a.reg < b.reg : a.component < b.component;
      });
      const auto same = [](const NumberedAccess& a, const NumberedAccess& b) {
        return a.reg == b.reg;
      };
      named_.erase(std::unique(named_.begin(), named_.end(), same), named_.end());
    }
    const bool guarded = function_.body[statement].guard.present();
    for (const NumberedAccess& a : named_) {
      in_order_.push_back({static_cast<std::uint32_t>(result_.accesses_.size()), statement, writes,
                           writes && (guarded || a.component != 0)});
      result_.accesses_.push_back({a.reg, kNone});
    }
  }

  std::uint32_t add(Version::Kind kind, std::uint32_t reg, std::uint32_t block) {
    Version v;
    v.kind = kind;
    v.reg = reg;
    v.block = block;
    result_.versions_.push_back(v);
    return result_.size() - 1;
  }

  void number(std::uint32_t reg, bool returned) {
    ++stamp_;
    split(reg);
    ScratchVector<std::uint32_t>& live = live_;
    live.clear();
    std::uint32_t writing = 0, writer = kNone;
    bool exposed = returned;
    for (const Part& part : parts_) {
      exposed = exposed || part.exposed;
      if (!part.writes) continue;
      ++writing;
      writer = part.block;
    }
    const bool simple = writing <= 1 && (!exposed || dominated(writer, returned));
    if (exposed && !simple) walk_live(returned);
    const bool entry = exposed && (writing == 0 || (!simple && at(0).live));
    const std::uint32_t entry_version = entry ? add(Version::Kind::Entry, reg, 0) : kNone;
    if (!simple && !live.empty()) place_phis();
    number_writes(reg);
    if (simple) {
      const std::uint32_t version = writing == 0 ? entry_version : result_.size() - 1;
      for (Part& part : parts_) part.in = version;
      if (returned) at(cfg_.exit()).in = version;
      result_.one_block_[reg] = 1;
    } else {
      rename(entry_version);
      if (result_.live_.size() + live.size() <= kLiveBudget * (nodes_ + function_.body.size())) {
        std::sort(live.begin(), live.end());
        for (const std::uint32_t block : live) result_.live_.push_back({block, at(block).in});
      }
    }
    resolve();
    if (returned) at_exit_.push_back({reg, at(cfg_.exit()).in});
  }

  void split(std::uint32_t reg) {
    parts_.clear();
    for (std::uint32_t e = first_event_[reg]; e < first_event_[reg + 1]; ++e) {
      const Event& event = events_[e];
      const std::uint32_t block = cfg_.block_of(event.statement);
      if (parts_.empty() || parts_.back().block != block)
        parts_.push_back({block, e, e, !event.write || event.partial, false, kNone, kNone});
      parts_.back().end = e + 1;
      parts_.back().writes |= event.write;
    }
  }

  // Whether the only block that writes gives every other one its value: almost always so.
  [[nodiscard]] bool dominated(std::uint32_t writer, bool returned) const {
    if (writer == kNone) return true;
    if (returned && !cfg_.dominators().dominates(writer, cfg_.exit())) return false;
    return std::all_of(parts_.begin(), parts_.end(), [&](const Part& part) {
      return !part.exposed || cfg_.dominators().strictly_dominates(writer, part.block);
    });
  }

  void walk_live(bool returned) {
    joins_.clear();
    // Blocks with events have said whether they want what they begin with.
    for (const Part& part : parts_) {
      State& s = at(part.block);
      s.visited = true;
      if (part.exposed) wanted(part.block);
    }
    if (returned) wanted(cfg_.exit());
    for (std::size_t next = 0; next < live_.size(); ++next) {
      const std::uint32_t block = live_[next];
      for (const std::uint32_t before : cfg_.predecessors(block)) {
        if (!cfg_.reachable(before)) continue;
        State& s = at(before);
        if (cfg_.dominators().immediate(block) != before) {
          joins_.push_back({block, s.join});
          s.join = static_cast<std::uint32_t>(joins_.size() - 1);
        }
        if (s.visited || s.live) continue;
        wanted(before);
      }
    }
    for (const std::uint32_t block : live_) {
      const std::uint32_t above = cfg_.dominators().immediate(block);
      if (above == kNoNode) continue;
      at(block).sibling = at(above).child;
      at(above).child = block;
    }
    for (const Part& part : parts_) at(part.block).visited = false;
  }
  void wanted(std::uint32_t block) {
    at(block).live = true;
    live_.push_back(block);
  }

  void place_phis() {
    phis_.clear();
    bank_.clear();
    const auto deeper = [&](std::uint32_t a, std::uint32_t b) {
      return depth_[a] != depth_[b] ? depth_[a] < depth_[b] : a < b;
    };
    const auto put = [&](std::uint32_t block) {
      State& s = at(block);
      if (s.banked) return;
      s.banked = true;
      bank_.push_back(block);
      std::push_heap(bank_.begin(), bank_.end(), deeper);
    };
    for (const Part& part : parts_) {
      if (part.writes) put(part.block);
    }
    while (!bank_.empty()) {
      std::pop_heap(bank_.begin(), bank_.end(), deeper);
      const std::uint32_t root = bank_.back();
      bank_.pop_back();
      open_.assign(1, root);
      at(root).visited = true;
      while (!open_.empty()) {
        const std::uint32_t block = open_.back();
        open_.pop_back();
        for (std::uint32_t j = at(block).join; j != kNone; j = joins_[j].next) {
          const std::uint32_t to = joins_[j].to;
          if (depth_[to] > depth_[root] || at(to).phi) continue;
          at(to).phi = true;
          phis_.push_back(to);
          put(to);
        }
        for (std::uint32_t c = at(block).child; c != kNone; c = at(c).sibling) {
          if (at(c).visited) continue;
          at(c).visited = true;
          open_.push_back(c);
        }
      }
    }
    std::sort(phis_.begin(), phis_.end());
  }

  // Versions for phis and writes, by block.
  void number_writes(std::uint32_t reg) {
    std::size_t next_phi = 0;
    const auto phis_up_to = [&](std::uint32_t block) {
      for (; next_phi < phis_.size() && phis_[next_phi] <= block; ++next_phi) {
        State& s = at(phis_[next_phi]);
        s.in = s.out = add(Version::Kind::Phi, reg, phis_[next_phi]);
        // Filled in by rename; one more for the entry.
        const std::size_t inputs =
            cfg_.predecessors(phis_[next_phi]).size() + (phis_[next_phi] == 0 ? std::size_t{1} : 0);
        pending_inputs_.push_back({s.in, static_cast<std::uint32_t>(result_.inputs_.size())});
        result_.inputs_.resize(result_.inputs_.size() + inputs, kNone);
      }
    };
    for (Part& part : parts_) {
      if (next_phi < phis_.size()) phis_up_to(part.block);
      for (std::uint32_t e = part.begin; part.writes && e < part.end; ++e) {
        const Event& event = events_[e];
        if (!event.write) continue;
        const std::uint32_t version = add(Version::Kind::Write, reg, part.block);
        result_.versions_[version].statement = event.statement;
        result_.versions_[version].partial = event.partial;
        result_.accesses_[event.access].version = version;
        part.out = version;
      }
    }
    phis_up_to(cfg_.exit());
    phis_.clear();
  }

  void rename(std::uint32_t entry_version) {
    for (const Part& part : parts_) {
      if (part.writes) at(part.block).out = part.out;
    }
    std::sort(live_.begin(), live_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return cfg_.position(a) < cfg_.position(b);
    });
    for (const std::uint32_t block : live_) {
      State& s = at(block);
      if (!s.phi) {
        const std::uint32_t above = cfg_.dominators().immediate(block);
        s.in = above == kNoNode ? entry_version : at(above).out;
      }
      if (s.out == kNone) s.out = s.in;
    }
    for (const auto& [version, first] : pending_inputs_) {
      const std::uint32_t block = result_.versions_[version].block;
      std::uint32_t to = first;
      for (const std::uint32_t before : cfg_.predecessors(block))
        result_.inputs_[to++] = cfg_.reachable(before) ? at(before).out : kNone;
      if (block == 0) result_.inputs_[to] = entry_version;
    }
    pending_inputs_.clear();
    for (Part& part : parts_) part.in = at(part.block).in;
  }

  void resolve() {
    for (const Part& part : parts_) {
      std::uint32_t version = part.in;
      for (std::uint32_t e = part.begin; e < part.end; ++e) {
        const Event& event = events_[e];
        Versions::Access& access = result_.accesses_[event.access];
        if (!event.write) {
          access.version = version;
          continue;
        }
        if (event.partial) result_.versions_[access.version].previous = version;
        version = access.version;
      }
    }
  }

  // Uses of versions, phis of blocks, inputs of phis: tables by counting.
  void link() {
    const std::uint32_t versions = result_.size();
    auto& first_input = result_.first_input_;
    first_input.reserve(versions + std::size_t{1});
    for (std::uint32_t v = 0; v < versions; ++v) {
      const Version& version = result_[v];
      std::size_t inputs = 0;
      if (version.kind == Version::Kind::Phi)
        inputs = cfg_.predecessors(version.block).size() + (version.block == 0 ? 1u : 0u);
      first_input.push_back(first_input.back() + static_cast<std::uint32_t>(inputs));
    }

    auto& first = result_.first_use_;
    first.assign(versions + std::size_t{1}, 0);
    ScratchVector<std::uint32_t> named_by(versions, &scratch_);  // of each version the last phi
    const auto for_each_use = [&](auto&& fn) {
      for (std::uint32_t i = 0; i < function_.body.size(); ++i) {
        for (std::uint32_t a = result_.first_read_[i]; a < result_.first_write_[i]; ++a)
          fn(result_.accesses_[a].version, VersionUse{i, kNone});
      }
      for (const Versions::Access& access : at_exit_) fn(access.version, VersionUse{kNone, kNone});
      std::fill(named_by.begin(), named_by.end(), kNone);
      for (std::uint32_t v = 0; v < versions; ++v) {
        if (result_[v].previous != kNone) fn(result_[v].previous, VersionUse{kNone, v});
        for (const std::uint32_t input : result_.inputs(v)) {
          // A phi may name one version several times: it counts once.
          if (input != kNone && std::exchange(named_by[input], v) != v)
            fn(input, VersionUse{kNone, v});
        }
      }
    };
    for_each_use([&](std::uint32_t version, VersionUse) { ++first[version + 1]; });
    for (std::uint32_t v = 0; v < versions; ++v) first[v + 1] += first[v];
    ScratchVector<std::uint32_t> place(first.begin(), first.end() - 1, &scratch_);
    result_.uses_.resize(first.back());
    for_each_use(
        [&](std::uint32_t version, VersionUse use) { result_.uses_[place[version]++] = use; });

    auto& first_phi = result_.first_phi_;
    first_phi.assign(nodes_ + std::size_t{1}, 0);
    for (const Version& v : result_.versions_) {
      if (v.kind == Version::Kind::Phi) ++first_phi[v.block + 1];
    }
    for (std::uint32_t b = 0; b < nodes_; ++b) first_phi[b + 1] += first_phi[b];
    place.assign(first_phi.begin(), first_phi.end() - 1);
    result_.phis_.resize(first_phi.back());
    for (std::uint32_t v = 0; v < versions; ++v) {
      if (result_[v].kind == Version::Kind::Phi) result_.phis_[place[result_[v].block]++] = v;
    }
  }

  Versions& result_;
  const Function& function_;
  const Cfg& cfg_;
  const RegisterIndex& index_;
  std::uint32_t nodes_;
  Scratch scratch_;
  ScratchVector<std::uint32_t> depth_;              // in the dominator tree
  ScratchVector<NumberedAccess> named_{&scratch_};  // by the statement at hand
  ScratchVector<Event> in_order_{&scratch_};        // as statements have them
  ScratchVector<Event> events_{&scratch_};          // by register
  ScratchVector<std::uint32_t> first_event_{&scratch_};
  ScratchVector<Versions::Access> at_exit_{&scratch_};
  // Of the register that is being done:
  std::uint32_t stamp_ = 0;
  ScratchVector<State> state_;
  ScratchVector<Part> parts_{&scratch_};
  ScratchVector<Join> joins_{&scratch_};
  ScratchVector<std::uint32_t> live_{&scratch_}, phis_{&scratch_}, bank_{&scratch_},
      open_{&scratch_};
  ScratchVector<std::pair<std::uint32_t, std::uint32_t>> pending_inputs_{&scratch_};
};

Versions::Versions(const Function& function, const Cfg& cfg, const RegisterIndex& index) {
  VersionsBuilder(*this, function, cfg, index).build();
}

std::uint32_t Versions::find(std::uint32_t begin, std::uint32_t end,
                             std::uint32_t reg) const noexcept {
  // Few, unless a call or a matrix instruction names more than fit into a line of the cache.
  constexpr std::uint32_t kFew = 8;
  auto from = accesses_.begin() + begin;
  const auto to = accesses_.begin() + end;
  const auto before = [](const Access& access, std::uint32_t r) { return access.reg < r; };
  if (end - begin > kFew) {
    from = std::lower_bound(from, to, reg, before);
  } else {
    while (from != to && before(*from, reg)) ++from;
  }
  return from == to || from->reg != reg ? kNone : from->version;
}

std::uint32_t Versions::read(std::uint32_t statement, std::uint32_t reg) const noexcept {
  return find(first_read_[statement], first_write_[statement], reg);
}
std::uint32_t Versions::written(std::uint32_t statement, std::uint32_t reg) const noexcept {
  return find(first_write_[statement], first_read_[statement + 1], reg);
}

std::span<const std::uint32_t> Versions::inputs(std::uint32_t phi) const noexcept {
  return slice(inputs_, first_input_, phi);
}

// The last version defined in the block before a statement, or kNone.
std::uint32_t Versions::last_in(std::uint32_t block, std::uint32_t before,
                                std::uint32_t reg) const noexcept {
  const auto [begin, end] = of(reg);
  const auto from = versions_.begin() + begin, to = versions_.begin() + end;
  const auto after = std::partition_point(from, to, [&](const Version& v) {
    if (v.kind == Version::Kind::Entry || v.block < block) return true;
    return v.block == block && (v.kind == Version::Kind::Phi || v.statement < before);
  });
  if (after == from) return kNone;
  const Version& v = *(after - 1);
  if (v.kind == Version::Kind::Entry || v.block != block) return kNone;
  return static_cast<std::uint32_t>(after - versions_.begin()) - 1;
}

std::uint32_t Versions::at_start(std::uint32_t block, std::uint32_t reg) const noexcept {
  const auto [begin, end] = of(reg);
  if (begin == end || !tree_.reachable(block)) return kNone;
  if (one_block_[reg] != 0) {
    if (versions_[begin].kind == Version::Kind::Entry) return begin;  // nothing writes it
    return tree_.strictly_dominates(versions_[begin].block, block) ? end - 1 : kNone;
  }
  const auto live = slice(live_, first_live_, reg);
  const auto found = std::lower_bound(live.begin(), live.end(), block,
                                      [](const Live& l, std::uint32_t b) { return l.block < b; });
  return found == live.end() || found->block != block ? kNone : found->version;
}

std::uint32_t Versions::before(std::uint32_t statement, std::uint32_t reg) const noexcept {
  const auto after = std::upper_bound(first_statement_.begin(), first_statement_.end(), statement);
  const auto block = static_cast<std::uint32_t>(after - first_statement_.begin()) - 1;
  const std::uint32_t version = last_in(block, statement, reg);
  return version != kNone ? version : at_start(block, reg);
}

std::uint32_t Versions::at_end(std::uint32_t block, std::uint32_t reg) const noexcept {
  const std::uint32_t version = last_in(block, kNone, reg);
  return version != kNone ? version : at_start(block, reg);
}

std::string to_text(const Versions& versions, const RegisterIndex& index, const Module& module,
                    const Function& function) {
  std::string text;
  for (std::uint32_t v = 0; v < versions.size(); ++v) {
    const Version& version = versions[v];
    text += name_of(module, function, index[version.reg]) + " #" + std::to_string(v) + ": ";
    if (version.kind == Version::Kind::Entry) {
      text += "at entry";
    } else if (version.kind == Version::Kind::Phi) {
      text += "phi of block " + std::to_string(version.block) + " of";
      for (const std::uint32_t input : versions.inputs(v))
        text += input == kNone ? " nothing" : " #" + std::to_string(input);
    } else {
      text += "statement " + std::to_string(version.statement);
      if (version.previous != kNone) text += " over #" + std::to_string(version.previous);
    }
    if (!versions.uses(v).empty()) text += ", read by";
    for (const VersionUse& use : versions.uses(v)) {
      text += use.returned()           ? std::string(" the caller")
              : use.statement != kNone ? " " + std::to_string(use.statement)
                                       : " #" + std::to_string(use.version);
    }
    text += "\n";
  }
  return text;
}

}  // namespace ptxgen::inline v0::analysis
