// src/check/parity/parity.cpp - a batched kernel against its single-row twin, as code
#include "ptxgen/check/parity.hpp"

#include <algorithm>
#include <optional>

#include "check/limits/limit_findings.hpp"
#include "check/module_facts.hpp"
#include "check/parity/code.hpp"
#include "ptxgen/check/gates.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::gates {

namespace {

using namespace ptx;

constexpr std::string_view kRowCount = "m_dim";
constexpr std::string_view kRowRule = "each row of a batched operand is at an address of its own";
constexpr std::string_view kCountRule =
    "rows from m_dim on are neither read nor written, so m_dim decides on each access";

/// Both kernels and what is known about them.
struct Pair {
  const ParityDeclaration& declared;
  ParityCode batched, single;
  SourceSet by_row = 0;     // parameters of the batched kernel
  SourceSet row_count = 0;  // m_dim, if there is one
  std::uint32_t batched_sums = 0;
  std::uint32_t single_sums = 0;

  Pair(ModuleFacts& batched_facts, ModuleFacts& single_facts, const ParityDeclaration& what)
      : declared(what), batched(batched_facts), single(single_facts) {
    SourceSet single_by_row = 0;
    for (const std::string& name : declared.by_row) {
      by_row |= parameter_source(batched.parameter(name));
      single_by_row |= parameter_source(single.parameter(name_in_single(name)));
    }
    const std::uint32_t count = batched.parameter(kRowCount);
    if (count != kNone) row_count = parameter_source(count);
    batched_sums = independent_sums(batched, by_row);
    single_sums = independent_sums(single, single_by_row);
  }

  [[nodiscard]] std::string_view name_in_single(std::string_view name) const {
    for (const auto& [of_single, of_batched] : declared.renamed) {
      if (of_batched == name) return of_single;
    }
    return name;
  }
  [[nodiscard]] std::string_view name_in_batched(std::string_view name) const {
    for (const auto& [of_single, of_batched] : declared.renamed) {
      if (of_single == name) return of_batched;
    }
    return name;
  }
  [[nodiscard]] bool is_by_row(const GlobalAccess& access) const {
    return access.parameter != kNone && (parameter_source(access.parameter) & by_row) != 0;
  }
  /// Rows that the code sums at a time: a pass of a loop up to m_dim, or all.
  [[nodiscard]] std::uint64_t rows_of_pass() const {
    if (row_count == 0) return 1;
    return step_of_loop_to(batched, row_count).value_or(declared.rows);
  }
};

ParityCheck failed(std::string_view name, std::string detail) {
  return {std::string(name), false, std::move(detail), {}};
}
ParityCheck passed(std::string_view name, std::string detail) {
  return {std::string(name), true, std::move(detail), {}};
}
ParityCheck failed_at(std::string_view name, const ParityCode& code, std::uint32_t statement,
                      std::string detail, std::string_view rule, std::string_view cure) {
  Finding finding = code.finding(statement, detail, rule, cure);
  return {std::string(name),
          false,
          format_text("{}; {}; {}", detail, rule, cure),
          {std::move(finding)}};
}

unsigned axis_of(BatchStrategy strategy) { return strategy == BatchStrategy::GridZ ? 2u : 1u; }
std::string_view axis_name(unsigned axis) { return axis == 2 ? "%ctaid.z" : "%ctaid.y"; }

// Strategy ----------------------------------------------------------------------------------------

/// Whether every access of an operand with rows has the block's index in its address.
bool rows_from(const Pair& pair, unsigned axis) {
  bool any = false;
  for (const GlobalAccess& access : pair.batched.accesses()) {
    if (!pair.is_by_row(access)) continue;
    any = true;
    if ((access.address & block_index(axis)) == 0) return false;
  }
  return any;
}

/// The first access that m_dim does not decide on.
std::optional<GlobalAccess> unguarded(const Pair& pair) {
  for (const GlobalAccess& access : pair.batched.accesses()) {
    if (!pair.is_by_row(access)) continue;
    const SourceSet all = access.address | pair.batched.deciding(access.statement);
    if ((all & pair.row_count) == 0) return access;
  }
  return std::nullopt;
}

std::optional<GlobalAccess> first_from_grid(const Pair& pair) {
  for (const GlobalAccess& access : pair.batched.accesses()) {
    const SourceSet grid = block_index(1) | block_index(2);
    if (pair.is_by_row(access) && (access.address & grid) != 0) return access;
  }
  return std::nullopt;
}

std::optional<BatchStrategy> derived_strategy(const Pair& pair) {
  if (rows_from(pair, 1)) return BatchStrategy::GridY;
  if (rows_from(pair, 2)) return BatchStrategy::GridZ;
  const bool counted = pair.row_count != 0 && !unguarded(pair) && !first_from_grid(pair);
  if (counted) return BatchStrategy::RegisterUnroll;
  return std::nullopt;
}

ParityCheck without_m_dim(const Pair& pair) {
  const std::uint32_t parameter = pair.batched.parameter(kRowCount);
  if (parameter == kNone) {
    return failed("strategy", format_text("there is no parameter {}; {}; declare it, or declare "
                                          "the strategy that the kernel has",
                                          kRowCount, kCountRule));
  }
  const std::uint32_t load = pair.batched.load_of(parameter);
  if (load == kNone) {
    return failed("strategy", format_text("{} is never loaded; {}; compare each row with it",
                                          kRowCount, kCountRule));
  }
  const GlobalAccess access = *unguarded(pair);
  return failed_at("strategy", pair.batched, access.statement,
                   format_text("{} ({}) decides neither on the address nor on the execution of an "
                               "access through {} ({})",
                               kRowCount, pair.batched.place(load),
                               pair.batched.parameter_name(access.parameter),
                               pair.batched.place(access.statement)),
                   kCountRule, "guard the row by a comparison with m_dim");
}

ParityCheck check_unroll(const Pair& pair) {
  if (const auto access = first_from_grid(pair)) {
    const unsigned axis = (access->address & block_index(1)) != 0 ? 1 : 2;
    return failed_at(
        "strategy", pair.batched, access->statement,
        format_text("register_unroll is declared, but the address of an access through {} ({}) "
                    "depends on {}",
                    pair.batched.parameter_name(access->parameter),
                    pair.batched.place(access->statement), axis_name(axis)),
        "register_unroll has all rows in one thread",
        format_text("declare {}, or sum the rows in registers", axis == 1 ? "grid_y" : "grid_z"));
  }
  if (pair.row_count == 0 || unguarded(pair)) return without_m_dim(pair);
  return passed("strategy", "register_unroll: m_dim decides on every access of a row");
}

ParityCheck check_strategy(const Pair& pair) {
  const BatchStrategy declared = pair.declared.strategy;
  if (declared == BatchStrategy::RegisterUnroll) return check_unroll(pair);
  const auto derived = derived_strategy(pair);
  if (derived == declared) {
    return passed("strategy", format_text("{}: {} is in the address of every access of a row",
                                          to_string(declared), axis_name(axis_of(declared))));
  }
  return failed("strategy",
                format_text("{} is declared, but the code shows {}; {}; declare the strategy that "
                            "the kernel has, or move every batched pointer by {}",
                            to_string(declared), derived ? to_string(*derived) : "no strategy",
                            kRowRule, axis_name(axis_of(declared))));
}

// Operands ----------------------------------------------------------------------------------------

/// The accesses through one parameter: the first, and the first without the row.
struct Uses {
  std::size_t count = 0;
  std::optional<std::uint32_t> without_row;
};

Uses uses_of(const Pair& pair, std::uint32_t parameter, SourceSet row) {
  Uses uses;
  for (const GlobalAccess& access : pair.batched.accesses()) {
    if (access.parameter != parameter) continue;
    ++uses.count;
    const SourceSet by = row != pair.row_count || row == 0
                             ? access.address
                             : access.address | pair.batched.deciding(access.statement);
    if ((by & row) == 0 && !uses.without_row) uses.without_row = access.statement;
  }
  return uses;
}

ParityCheck check_row_offsets(const Pair& pair) {
  const bool grid = pair.declared.strategy != BatchStrategy::RegisterUnroll;
  const unsigned axis = axis_of(pair.declared.strategy);
  const SourceSet row = grid ? block_index(axis) : pair.row_count;
  const std::string_view source = grid ? axis_name(axis) : kRowCount;
  std::size_t accesses = 0;
  for (const std::string& name : pair.declared.by_row) {
    const std::uint32_t parameter = pair.batched.parameter(name);
    const Uses uses = uses_of(pair, parameter, row);
    if (uses.count == 0) {
      return failed("row offsets",
                    format_text("no access to global memory goes through {}, which has elements of "
                                "each row; {}; access it, or leave it out",
                                name, kRowRule));
    }
    if (uses.without_row) {
      return failed_at("row offsets", pair.batched, *uses.without_row,
                       format_text("the access through {} ({}) does not depend on {}", name,
                                   pair.batched.place(*uses.without_row), source),
                       kRowRule, format_text("add the offset of the row to {}", name));
    }
    accesses += uses.count;
  }
  for (const GlobalAccess& access : pair.batched.accesses()) {
    if (access.parameter != kNone) continue;
    return failed_at("row offsets", pair.batched, access.statement,
                     format_text("the address of {} is not derived from one parameter",
                                 pair.batched.place(access.statement)),
                     "an access belongs to one operand", "compute its address from that operand");
  }
  return passed("row offsets", format_text("{} accesses through {} operands depend on {}", accesses,
                                           pair.declared.by_row.size(), source));
}

ParityCheck check_accumulators(const Pair& pair) {
  const std::string text =
      format_text("{} independent sums, the twin has {}", pair.batched_sums, pair.single_sums);
  if (pair.declared.strategy != BatchStrategy::RegisterUnroll) {
    if (pair.batched_sums == pair.single_sums) return passed("accumulators", text);
    return failed(
        "accumulators",
        format_text("{}; {} has one row in a thread; sum the rows in different blocks, or "
                    "declare register_unroll",
                    text, to_string(pair.declared.strategy)));
  }
  const std::uint64_t pass = pair.rows_of_pass();
  const bool enough = pass > 1 || pair.declared.rows == 1;
  if (pair.single_sums != 0 && enough && pair.batched_sums == pass * pair.single_sums) {
    return passed("accumulators", format_text("{}: {} rows a pass", text, pass));
  }
  return failed("accumulators",
                format_text("{}; {} rows of a pass of register_unroll have {} each; sum every row "
                            "into registers of its own",
                            text, pass, std::max(1u, pair.single_sums)));
}

// Parameters --------------------------------------------------------------------------------------

/// Names that one list has and the other does not, in order.
struct Difference {
  std::vector<std::string> extra;    // of the batched kernel
  std::vector<std::string> removed;  // of the twin
};

bool explained(const Pair& pair, std::string_view removed) {
  const auto& sizes = pair.declared.sizes;
  return std::find(sizes.begin(), sizes.end(), removed) != sizes.end() ||
         pair.single.load_of(pair.single.parameter(removed)) == kNone;
}

std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

Difference difference_of(const Pair& pair) {
  Difference difference;
  for (std::uint32_t i = 0; i < pair.single.function().parameters.size(); ++i) {
    const std::string_view name = pair.single.parameter_name(i);
    if (pair.batched.parameter(pair.name_in_batched(name)) == kNone)
      difference.removed.emplace_back(name);
  }
  for (std::uint32_t i = 0; i < pair.batched.function().parameters.size(); ++i) {
    const std::string_view name = pair.batched.parameter_name(i);
    if (pair.single.parameter(pair.name_in_single(name)) == kNone)
      difference.extra.emplace_back(name);
  }
  return difference;
}

ParityCheck check_parameters(const Pair& pair) {
  const Difference difference = difference_of(pair);
  std::string text = "the same";
  if (!difference.extra.empty() || !difference.removed.empty()) {
    text.clear();
    if (!difference.extra.empty()) text = format_text("extra {}", list(difference.extra));
    if (!difference.removed.empty())
      text += format_text("{}removed {}", text.empty() ? "" : "; ", list(difference.removed));
  }
  const bool unroll = pair.declared.strategy == BatchStrategy::RegisterUnroll;
  for (const std::string& name : difference.extra) {
    if (unroll && name == kRowCount) continue;
    return failed("parameters",
                  format_text("{}; {} has no counterpart in the twin; a batched kernel adds m_dim "
                              "alone, and only with register_unroll; name the twin's operand",
                              text, name));
  }
  for (const std::string& name : difference.removed) {
    if (explained(pair, name)) continue;
    return failed("parameters",
                  format_text("{}; the twin reads {}, which the batched kernel does not have; only "
                              "sizes may become constants; add the parameter",
                              text, name));
  }
  return passed("parameters", text);
}

// Loops and shared memory -------------------------------------------------------------------------

// A batch of register_unroll has loops over its passes and rows; the others are the twin's.
ParityCheck check_loops(const Pair& pair) {
  const bool unroll = pair.declared.strategy == BatchStrategy::RegisterUnroll;
  const std::string all = loop_text(pair.batched);
  const std::string batched = loop_text(pair.batched, unroll ? pair.row_count : 0);
  const std::string single = loop_text(pair.single);
  const auto shown = [](const std::string& loops) { return loops.empty() ? "none" : loops; };
  std::string text = shown(batched);
  if (all != batched) text += format_text(" ({} with the loops over rows)", all);
  if (batched == single) return passed("loops", format_text("{}, as the twin", text));
  return failed("loops",
                format_text("{}, the twin has {}; a row passes through the twin's loops; sum it as "
                            "the twin does",
                            text, shown(single)));
}

std::uint64_t shared_bytes(const ParityCode& code) {
  const auto& functions = code.module().functions;
  return static_shared_bytes(code.module(),
                             static_cast<std::uint32_t>(&code.function() - functions.data()));
}

ParityCheck check_shared_memory(const Pair& pair) {
  const std::uint64_t batched =
      shared_bytes(pair.batched) + pair.declared.batched_dynamic_shared_bytes;
  const std::uint64_t single =
      shared_bytes(pair.single) + pair.declared.single_dynamic_shared_bytes;
  const bool unroll = pair.declared.strategy == BatchStrategy::RegisterUnroll;
  const std::uint64_t rows = unroll ? pair.rows_of_pass() : 1;
  const std::string text =
      format_text("{} bytes, the twin has {}, {} rows a pass", batched, single, rows);
  if (batched == single || (batched > single && batched <= rows * single))
    return passed("shared memory", text);
  return failed("shared memory",
                format_text("{}; a row of a pass has what the twin has, at most; declare the same "
                            "arrays, one for each row",
                            text));
}

ParityCheck check_shared_addresses(const Pair& pair, const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    if (finding.rule != "shared-64bit-address") continue;
    return {"shared addresses", false, finding.message, {finding}};
  }
  for (const GlobalAccess& access : pair.batched.accesses()) {
    if ((access.address & kSharedAddress) == 0) continue;
    return failed_at("shared addresses", pair.batched, access.statement,
                     format_text("{} accesses shared memory by a generic address",
                                 pair.batched.place(access.statement)),
                     "shared memory is accessed by 32-bit addresses of its window",
                     "write .shared, with the address of the variable");
  }
  return passed("shared addresses", "32 bits in the window");
}

// Gates -------------------------------------------------------------------------------------------

std::vector<Finding> findings_of(ModuleFacts& facts) {
  std::vector<Finding> all;
  for (const GateInfo& gate : all_gates()) {
    if (gate.run == performance_notes) continue;
    std::vector<Finding> found = gate.run_with(facts);
    all.insert(all.end(), std::make_move_iterator(found.begin()),
               std::make_move_iterator(found.end()));
  }
  return all;
}

GateOptions gate_options(const std::array<std::uint32_t, 3>& block) {
  return {.block = block, .origin = CodeOrigin::Built};
}

ParityCheck check_gates(const std::vector<Finding>& batched, const std::vector<Finding>& single) {
  for (const std::vector<Finding>* findings : {&batched, &single}) {
    for (const Finding& finding : *findings) {
      if (finding.severity == Severity::Note) continue;
      return {"gates",
              false,
              format_text("{}: {} [{}]", findings == &batched ? "batched" : "single",
                          finding.message, finding.rule),
              {finding}};
    }
  }
  return passed("gates", "no finding for either kernel");
}

std::vector<ParityCheck> without_entry(const Module& batched, const Module& single) {
  std::vector<ParityCheck> checks;
  for (const Module* module : {&batched, &single}) {
    if (only_entry(*module) != nullptr) continue;
    checks.push_back(failed("entry", format_text("the {} module does not have exactly one entry "
                                                 "with a body; parity compares two kernels",
                                                 module == &batched ? "batched" : "single")));
  }
  return checks;
}

// An operand that the code does not have.
std::optional<ParityCheck> missing_operand(const Pair& pair) {
  for (const std::string& name : pair.declared.by_row) {
    if (pair.batched.parameter(name) != kNone) continue;
    return failed("row offsets",
                  format_text("{} is declared to have elements of each row, but is no parameter of "
                              "the batched kernel; declare the kernel's parameters",
                              name));
  }
  if (!pair.declared.by_row.empty()) return std::nullopt;
  return failed("row offsets",
                "no operand is declared to have elements of each row; a batched "
                "kernel has some; declare them");
}

}  // namespace

std::vector<ParityCheck> parity(const Module& batched, const Module& single,
                                const ParityDeclaration& declared) {
  std::vector<ParityCheck> checks = without_entry(batched, single);
  if (!checks.empty()) return checks;
  ModuleFacts batched_facts(batched, gate_options(declared.batched_block));
  ModuleFacts single_facts(single, gate_options(declared.single_block));
  const Pair pair(batched_facts, single_facts, declared);
  if (auto missing = missing_operand(pair)) return {std::move(*missing)};
  const std::vector<Finding> found = findings_of(batched_facts);
  const std::vector<Finding> found_single = findings_of(single_facts);
  checks.push_back(check_strategy(pair));
  checks.push_back(check_row_offsets(pair));
  checks.push_back(check_accumulators(pair));
  checks.push_back(check_parameters(pair));
  checks.push_back(check_loops(pair));
  checks.push_back(check_shared_memory(pair));
  checks.push_back(check_shared_addresses(pair, found));
  checks.push_back(check_gates(found, found_single));
  return checks;
}

}  // namespace ptxgen::inline v0::gates

namespace ptxgen::inline v0 {

std::string_view to_string(BatchStrategy strategy) noexcept {
  switch (strategy) {
    case BatchStrategy::GridY:
      return "grid_y";
    case BatchStrategy::GridZ:
      return "grid_z";
    case BatchStrategy::RegisterUnroll:
      break;
  }
  return "register_unroll";
}

}  // namespace ptxgen::inline v0
