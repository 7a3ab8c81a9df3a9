// src/coverage/coverage.cpp - blocks, edges and outcomes from the emulator's counters
#include "coverage/coverage.hpp"

#include <algorithm>

#include "ptxgen/analysis/cfg.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"
#include "support/hash.hpp"

namespace ptxgen::coverage {

namespace {

using emulator::LineCounters;

bool is_instruction(const ptx::Instruction& s) { return s.kind == ptx::StatementKind::Instruction; }

/// The counters of each statement of a function, null for those without. Several statements may
/// share a line of the text; those that the emulator has not decoded, because nothing reaches them,
/// have no counters.
class StatementCounters {
 public:
  StatementCounters(const ptx::Module& module, const ptx::Function& function,
                    const emulator::Counters& counters) {
    const std::string_view name = module.text(function.name);
    std::vector<const LineCounters*> lines;
    for (const LineCounters& line : counters.lines) {
      if (line.function == name) lines.push_back(&line);
    }
    found_ = !lines.empty();
    executed_ = std::ranges::any_of(lines, [](const auto* line) { return line->executions != 0; });
    all_.resize(function.body.size());
    std::size_t next = 0;
    for (std::size_t i = 0; i < function.body.size(); ++i) {
      const ptx::Instruction& s = function.body[i];
      if (!is_instruction(s)) continue;
      while (next < lines.size() && lines[next]->line < s.line) ++next;
      if (next == lines.size()) break;
      if (lines[next]->line != s.line || !matches(module, function, i, *lines[next])) continue;
      all_[i] = lines[next++];
    }
  }

  [[nodiscard]] bool found() const noexcept { return found_; }
  [[nodiscard]] bool executed() const noexcept { return executed_; }
  [[nodiscard]] const LineCounters* operator[](std::size_t statement) const noexcept {
    return all_[statement];
  }

 private:
  // The opcode is compared only where the line does not decide.
  static bool matches(const ptx::Module& module, const ptx::Function& function, std::size_t i,
                      const LineCounters& line) {
    const bool alone = i + 1 == function.body.size() || function.body[i + 1].line != line.line;
    return alone ||
           ptx::print(module, function, function.body[i]).find(line.opcode) != std::string::npos;
  }

  std::vector<const LineCounters*> all_;
  bool found_ = false;
  bool executed_ = false;
};

struct Outcomes {
  std::uint64_t on = 0;
  std::uint64_t off = 0;
};

Outcomes outcomes_of(const LineCounters* line) {
  if (line == nullptr) return {};
  return {line->predicated_on, line->thread_executions - line->predicated_on};
}

/// Adds one function's blocks, edges and conditions, and their counts.
class FunctionCoverage {
 public:
  FunctionCoverage(const ptx::Module& module, const ptx::Function& function,
                   const StatementCounters& counters, KernelCoverage& kernel, CaseCounts& counts)
      : module_(module),
        function_(function),
        counters_(counters),
        cfg_(function),
        kernel_(kernel),
        counts_(counts) {}

  void add() {
    add_blocks();
    first_edge_ = kernel_.edges.size();
    add_edges();
    while (count_empty_blocks()) {
    }
  }

 private:
  [[nodiscard]] std::string text_of(std::uint32_t statement) const {
    return ptx::print(module_, function_, function_.body[statement]);
  }
  [[nodiscard]] std::uint32_t number_of(std::uint32_t block) const {
    return block == cfg_.exit() ? kExit : numbers_[block];
  }

  void add_blocks() {
    const auto blocks = cfg_.blocks();
    numbers_.assign(blocks.size(), kExit);
    for (std::uint32_t b = 0; b < blocks.size(); ++b) {
      if (!cfg_.reachable(b)) continue;
      numbers_[b] = static_cast<std::uint32_t>(kernel_.blocks.size());
      Block block;
      block.function = std::string(module_.text(function_.name));
      std::uint64_t threads = 0;
      for (std::uint32_t i = blocks[b].first; i < blocks[b].end; ++i) {
        const ptx::Instruction& s = function_.body[i];
        if (block.line == 0) block.line = s.line;
        if (!is_instruction(s)) continue;
        if (block.text.empty()) {
          block.text = text_of(i);
          block.line = s.line;
          if (counters_[i] != nullptr) threads = counters_[i]->thread_executions;
        }
        block.last_line = s.line;
        if (s.guard.present()) add_condition(i);
      }
      block.last_line = std::max(block.last_line, block.line);
      empty_.push_back(block.text.empty());
      kernel_.blocks.push_back(std::move(block));
      counts_.blocks.push_back(threads);
    }
  }

  void add_condition(std::uint32_t statement) {
    const ptx::Instruction& s = function_.body[statement];
    const Outcomes outcomes = outcomes_of(counters_[statement]);
    kernel_.conditions.push_back({static_cast<std::uint32_t>(kernel_.blocks.size()), s.line,
                                  text_of(statement),
                                  ptx::has(ptx::info(s.op).flags, ptx::Flag::Branch)});
    counts_.taken.push_back(outcomes.on);
    counts_.not_taken.push_back(outcomes.off);
  }

  void add_edge(std::uint32_t from, std::uint32_t to, std::uint64_t threads, bool counted = true) {
    kernel_.edges.push_back({number_of(from), number_of(to), counted});
    counts_.edges.push_back(counted ? threads : 0);
  }

  void add_edges() {
    const auto blocks = cfg_.blocks();
    for (std::uint32_t b = 0; b < blocks.size(); ++b) {
      if (!cfg_.reachable(b)) continue;
      const auto successors = cfg_.successors(b);
      const std::uint32_t end = blocks[b].terminator;
      if (end == ptx::kNone) {
        for (const std::uint32_t to : successors) add_edge(b, to, threads_at_end(b));
        continue;
      }
      const ptx::Instruction& s = function_.body[end];
      const Outcomes outcomes = outcomes_of(counters_[end]);
      const bool table = successors.size() > (s.guard.present() ? 2u : 1u);
      for (std::size_t i = 0; i < successors.size(); ++i) {
        // The last successor of a guarded branch is the next block, and may be its target too.
        const bool next = s.guard.present() && i + 1 == successors.size();
        if (next) {
          add_edge(b, successors[i], outcomes.off + (i == 0 ? outcomes.on : 0));
        } else if (!table) {
          add_edge(b, successors[i], outcomes.on);
        } else {
          const bool alone = cfg_.predecessors(successors[i]).size() == 1;
          add_edge(b, successors[i], alone ? threads_of(successors[i]) : 0, alone);
        }
      }
    }
  }

  [[nodiscard]] std::uint64_t threads_of(std::uint32_t block) const {
    return block == cfg_.exit() ? 0 : counts_.blocks[numbers_[block]];
  }
  [[nodiscard]] std::uint64_t threads_at_end(std::uint32_t block) const {
    const analysis::Block& code = cfg_.blocks()[block];
    for (std::uint32_t i = code.end; i-- > code.first;) {
      if (is_instruction(function_.body[i])) {
        return counters_[i] == nullptr ? 0 : counters_[i]->thread_executions;
      }
    }
    return threads_of(block);
  }

  /// Blocks of labels alone have no counters: as many threads pass them as the edges to them.
  /// Whether something has changed.
  bool count_empty_blocks() {
    const std::uint32_t first = numbers_[0];
    std::vector<std::uint64_t> sums(empty_.size());
    sums[0] = counters_.executed() ? 1 : 0;  // the function's entry
    for (std::size_t e = first_edge_; e < kernel_.edges.size(); ++e) {
      if (kernel_.edges[e].to != kExit) sums[kernel_.edges[e].to - first] += counts_.edges[e];
    }
    bool changed = false;
    for (std::size_t e = first_edge_; e < kernel_.edges.size(); ++e) {
      const std::uint32_t from = kernel_.edges[e].from - first;
      if (!empty_[from] || counts_.edges[e] == sums[from]) continue;
      counts_.edges[e] = counts_.blocks[first + from] = sums[from];
      changed = true;
    }
    // A loop of empty blocks would grow for ever; it executes nothing.
    return changed && ++passes_ <= empty_.size();
  }

  const ptx::Module& module_;
  const ptx::Function& function_;
  const StatementCounters& counters_;
  const analysis::Cfg cfg_;
  KernelCoverage& kernel_;
  CaseCounts& counts_;
  std::vector<std::uint32_t> numbers_;  ///< in the kernel's blocks, by block of the function
  std::vector<bool> empty_;             ///< of the function's reachable blocks
  std::size_t first_edge_ = 0;
  std::size_t passes_ = 0;
};

void add_counts(std::vector<std::uint64_t>& to, const std::vector<std::uint64_t>& from) {
  to.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) to[i] += from[i];
}

void add_case(CaseCounts& to, const CaseCounts& from) {
  to.launches += from.launches;
  add_counts(to.blocks, from.blocks);
  add_counts(to.edges, from.edges);
  add_counts(to.taken, from.taken);
  add_counts(to.not_taken, from.not_taken);
  for (const CellMap& map : from.cells) add(to.cells, map);
}

void count(Share& share, std::uint64_t threads) {
  ++share.all;
  share.covered += threads != 0;
}

}  // namespace

Shares& Shares::operator+=(const Shares& other) noexcept {
  blocks += other.blocks;
  edges += other.edges;
  cells += other.cells;
  branches += other.branches;
  guards += other.guards;
  return *this;
}

KernelCoverage of_launch(const ptx::Module& module, std::string_view kernel,
                         const emulator::Counters& counters, std::string_view case_name) {
  KernelCoverage result;
  result.kernel = std::string(kernel);
  result.code = to_hex(hash128(ptx::print(module)));
  CaseCounts counts;
  counts.name = std::string(case_name);
  counts.launches = 1;
  const auto add_function = [&](const ptx::Function& function, bool always) {
    const StatementCounters of(module, function, counters);
    if (always || of.found()) FunctionCoverage(module, function, of, result, counts).add();
  };
  const ptx::Function* const entry = module.find_function(kernel);
  if (entry != nullptr && !entry->declaration) add_function(*entry, true);
  for (const ptx::Function& function : module.functions) {
    if (!function.entry && !function.declaration) add_function(function, false);
  }
  result.cases.push_back(std::move(counts));
  return result;
}

void add(Coverage& to, KernelCoverage from) {
  const auto same = std::ranges::find_if(to.kernels, [&](const KernelCoverage& other) {
    return other.kernel == from.kernel && other.code == from.code && other.of == from.of;
  });
  if (same == to.kernels.end()) {
    KernelCoverage empty = from;
    empty.cases.clear();
    to.kernels.push_back(std::move(empty));
    return add(to, std::move(from));
  }
  if (same->blocks.size() != from.blocks.size() || same->edges.size() != from.edges.size() ||
      same->conditions.size() != from.conditions.size()) {
    throw Error(Stage::Io, "bad-coverage",
                format_text("coverage of {}: code {} has {} blocks, {} edges and {} conditions, or "
                            "{}, {} and {}; one of the files was changed or is of another version; "
                            "record it again",
                            from.kernel, from.code, same->blocks.size(), same->edges.size(),
                            same->conditions.size(), from.blocks.size(), from.edges.size(),
                            from.conditions.size()));
  }
  for (CaseCounts& counts : from.cases) {
    const auto known = std::ranges::find(same->cases, counts.name, &CaseCounts::name);
    if (known == same->cases.end()) {
      same->cases.push_back(std::move(counts));
    } else {
      add_case(*known, counts);
    }
  }
}

void merge(Coverage& to, const Coverage& from) {
  for (const KernelCoverage& kernel : from.kernels) add(to, kernel);
}

CaseCounts total(const KernelCoverage& kernel) {
  CaseCounts sum;
  sum.blocks.resize(kernel.blocks.size());
  sum.edges.resize(kernel.edges.size());
  sum.taken.resize(kernel.conditions.size());
  sum.not_taken.resize(kernel.conditions.size());
  for (const CaseCounts& counts : kernel.cases) add_case(sum, counts);
  return sum;
}

Shares shares(const KernelCoverage& kernel, const CaseCounts& counts) {
  Shares shares;
  for (const std::uint64_t threads : counts.blocks) count(shares.blocks, threads);
  for (std::size_t i = 0; i < kernel.edges.size(); ++i) {
    if (kernel.edges[i].counted) count(shares.edges, counts.edges[i]);
  }
  for (std::size_t i = 0; i < kernel.conditions.size(); ++i) {
    Share& share = kernel.conditions[i].branch ? shares.branches : shares.guards;
    count(share, counts.taken[i]);
    count(share, counts.not_taken[i]);
  }
  for (const CellMap& map : counts.cells) {
    shares.cells += Share{map.covered(), map.cells.size()};
  }
  return shares;
}

Shares shares(const KernelCoverage& kernel) {
  Shares sum = shares(kernel, total(kernel));
  sum.cells = {};
  for (const CaseCounts& counts : kernel.cases) sum.cells += shares(kernel, counts).cells;
  return sum;
}

std::vector<Missed> missed(const KernelCoverage& kernel, const CaseCounts& counts) {
  std::vector<Missed> all;
  const auto executed = [&](std::uint32_t block) { return counts.blocks[block] != 0; };
  for (std::uint32_t b = 0; b < kernel.blocks.size(); ++b) {
    const Block& block = kernel.blocks[b];
    if (executed(b) || block.text.empty()) continue;
    const std::string where = block.line == block.last_line
                                  ? format_text("line {} is", block.line)
                                  : format_text("lines {} to {} are", block.line, block.last_line);
    all.push_back(
        {Missed::What::Block, block.line, format_text("{} never executed: {}", where, block.text)});
  }
  for (std::size_t i = 0; i < kernel.conditions.size(); ++i) {
    const Condition& condition = kernel.conditions[i];
    if (!executed(condition.block)) continue;
    const auto note = [&](Missed::What what, std::string_view words) {
      all.push_back({what, condition.line, format_text("{}: {}", words, condition.text)});
    };
    if (counts.taken[i] == 0) {
      note(Missed::What::Taken,
           condition.branch ? "the branch is never taken" : "the guard never holds");
    }
    if (counts.not_taken[i] == 0) {
      note(Missed::What::NotTaken,
           condition.branch ? "the branch is always taken" : "the guard always holds");
    }
  }
  std::ranges::stable_sort(all, {}, &Missed::line);
  return all;
}

}  // namespace ptxgen::coverage
