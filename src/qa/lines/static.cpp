// src/qa/lines/static.cpp - 1: static analysis of the code, bug classes, regression baseline
#include <algorithm>
#include <array>

#include "ptxgen/analysis/cfg.hpp"
#include "ptxgen/analysis/diff.hpp"
#include "ptxgen/check/gates.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "ptxgen/support/error.hpp"
#include "qa/edits.hpp"
#include "qa/fixture.hpp"
#include "qa/gemv_check.hpp"
#include "qa/lines/lines.hpp"
#include "qa/lines/snippets.hpp"
#include "qa/tally.hpp"

namespace ptxgen::qa {

namespace static_analysis {
namespace {

// Every kernel of the catalog that the device's target can run, in its default shape. Families
// stand for kernels that are listed themselves.
template <class Work>
void each_kernel(Fixture& fixture, const Work& work) {
  for (const KernelDescription& kernel : fixture.catalog) {
    if (kernel.family != nullptr || kernel.build_of == nullptr) continue;
    if (!kernel.serves(fixture.target())) continue;
    work(kernel, fixture.edited(kernel.build(kernel.default_values(), fixture.target())));
  }
}

std::size_t count_rule(const std::vector<Finding>& findings, std::string_view rule) {
  return static_cast<std::size_t>(std::ranges::count(findings, rule, &Finding::rule));
}

// P1 ----------------------------------------------------------------------------------------------

bool in_shared_memory(const ptx::Instruction& statement) {
  const ptx::Modifier space = statement.get(ptx::Field::Space);
  return space == ptx::Modifier::shared || space == ptx::Modifier::shared_cta ||
         space == ptx::Modifier::shared_cluster;
}

bool is_wide(ptx::Type type) {
  return type == ptx::Type::u64 || type == ptx::Type::s64 || type == ptx::Type::b64;
}

// Accesses to shared memory whose base register has 64 bits, and all of them.
std::array<std::size_t, 2> wide_shared_accesses(const ptx::Function& function) {
  std::array<std::size_t, 2> counts{};
  for (const ptx::Instruction& statement : function.body) {
    if (statement.kind != ptx::StatementKind::Instruction || !in_shared_memory(statement)) continue;
    for (const ptx::Operand& operand : function.operands_of(statement)) {
      if (operand.kind != ptx::OperandKind::Memory) continue;
      ++counts[1];
      counts[0] += operand.base == ptx::OperandKind::Register &&
                   is_wide(function.type_of(operand.as_register()));
      break;  // the source of a copy to shared memory is global
    }
  }
  return counts;
}

Outcome shared_addresses(Fixture& fixture, const Line&) {
  Tally tally;
  std::size_t accesses = 0;
  std::size_t kernels = 0;
  each_kernel(fixture, [&](const KernelDescription& kernel, const ptx::Module& module) {
    ++kernels;
    for (const ptx::Function& function : module.functions) {
      const auto [wide, all] = wide_shared_accesses(function);
      accesses += all;
      tally.check(wide == 0, "{}: {} of {} shared accesses have a 64-bit address", kernel.name,
                  wide, all);
    }
  });
  tally.check(accesses > 0, "no kernel has a shared access");
  for (const char* snippet : {kWideSharedLoad, kWideSharedStore}) {
    const ptx::Module module = ptx::parse(snippet);
    tally.check(wide_shared_accesses(module.functions.front())[0] == 1,
                "a fixture with a 64-bit shared address is not found");
    tally.check(count_rule(gates::analyze(module), "shared-64bit-address") == 1,
                "the gate does not report the fixture's address");
  }
  tally.figure(
      "{} kernels, {} shared accesses, all with 32-bit addresses; a load and a store with "
      "64 bits are found",
      kernels, accesses);
  return tally.outcome();
}

// P2 ----------------------------------------------------------------------------------------------

struct LoopCheck {
  std::size_t loops = 0;
  std::string wrong;  // the first thing that is
};

bool leaves(const analysis::Cfg& cfg, std::uint32_t loop) {
  for (const std::uint32_t node : cfg.loops().nodes(loop)) {
    for (const std::uint32_t next : cfg.successors(node)) {
      if (!cfg.loops().contains(loop, next)) return true;
    }
  }
  return false;
}

LoopCheck check_loops(const ptx::Function& function) {
  const analysis::Cfg cfg(function);
  LoopCheck check;
  const auto add = [&](std::string text) {
    if (check.wrong.empty()) check.wrong = std::move(text);
  };
  for (std::uint32_t i = 0; i < cfg.loops().loops().size(); ++i) {
    const analysis::Loop& loop = cfg.loops().loops()[i];
    ++check.loops;
    if (loop.irreducible) add(format_text("loop {} is entered beside its header", i));
    if (!leaves(cfg, i)) add(format_text("loop {} has no exit", i));
    for (const std::uint32_t latch : cfg.predecessors(loop.header)) {
      if (!cfg.loops().contains(i, latch)) continue;
      if (!cfg.dominators().dominates(loop.header, latch)) {
        add(format_text("the header of loop {} does not dominate its latch", i));
      }
      const std::uint32_t terminator = cfg.blocks()[latch].terminator;
      if (terminator == ptx::kNone || !function.body[terminator].guard.present()) {
        add(format_text("the branch back to the header of loop {} is not conditional", i));
      }
    }
  }
  return check;
}

Outcome loops(Fixture& fixture, const Line&) {
  Tally tally;
  std::size_t found = 0;
  each_kernel(fixture, [&](const KernelDescription& kernel, const ptx::Module& module) {
    for (const ptx::Function& function : module.functions) {
      const LoopCheck check = check_loops(function);
      found += check.loops;
      tally.check(check.wrong.empty(), "{}: {}", kernel.name, check.wrong);
    }
  });
  tally.check(check_loops(fixture.build(GemvCoalesced{}).functions.front()).loops == 3,
              "gemv_coalesced has not three loops: tiles, four rows, remaining rows");
  tally.check(!check_loops(ptx::parse(kInfiniteLoop).functions.front()).wrong.empty(),
              "an infinite loop is not found");
  tally.check(
      count_rule(gates::analyze(ptx::parse(kBranchToLoopEnd)), "loop-branch-direction") == 1,
      "a continuation aimed at the end of its loop is not found");
  tally.figure(
      "{} loops of the catalog's kernels: header dominates latch, conditional back edge, "
      "an exit",
      found);
  return tally.outcome();
}

// P3 ----------------------------------------------------------------------------------------------

std::uint32_t bytes_of(const ptx::Variable& parameter) {
  return static_cast<std::uint32_t>(ptx::size_in_bytes(parameter));
}

Outcome entries(Fixture& fixture, const Line&) {
  Tally tally;
  std::size_t kernels = 0;
  each_kernel(fixture, [&](const KernelDescription& kernel, const ptx::Module& module) {
    ++kernels;
    const auto count =
        std::ranges::count_if(module.functions, [](const ptx::Function& f) { return f.entry; });
    tally.check(count == 1, "{}: {} entries", kernel.name, count);
    const ptx::Function* entry = module.find_function(kernel.name);
    if (!tally.check(entry != nullptr, "{}: no entry of that name", kernel.name)) return;
    std::uint32_t bytes = 0;
    for (const ptx::Variable& parameter : entry->parameters) {
      const std::uint32_t size = bytes_of(parameter);
      if (size == 0) continue;
      const std::uint32_t alignment = std::min(size, 64u);
      bytes = (bytes + alignment - 1) / alignment * alignment + size;
    }
    tally.check(bytes <= kernel.block_bytes, "{}: {} bytes of parameters, its arguments have {}",
                kernel.name, bytes, kernel.block_bytes);
  });
  // The reference kernel by the specification's list.
  const ptx::Module module = fixture.build(GemvCoalesced{});
  const std::vector<ptx::Variable>& parameters = module.functions.front().parameters;
  constexpr std::pair<std::string_view, ptx::Type> kExpected[] = {{"y_ptr", ptx::Type::u64},
                                                                  {"a_ptr", ptx::Type::u64},
                                                                  {"x_ptr", ptx::Type::u64},
                                                                  {"k_dim", ptx::Type::u32},
                                                                  {"n_dim", ptx::Type::u32}};
  if (tally.check(parameters.size() == std::size(kExpected), "{} parameters", parameters.size())) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      tally.check(module.text(parameters[i].name) == kExpected[i].first &&
                      parameters[i].type == kExpected[i].second,
                  "parameter {} is {}, expected {}", i, module.text(parameters[i].name),
                  kExpected[i].first);
    }
  }
  tally.figure("{} kernels", kernels);
  return tally.outcome();
}

// P4 ----------------------------------------------------------------------------------------------

constexpr std::uint32_t kConfigurations[][2] = {{16, 8},   {256, 256}, {4096, 4096},
                                                {127, 63}, {1, 300},   {300, 1}};

Outcome bounds(Fixture& fixture, const Line&) {
  Tally tally;
  std::uint64_t requests = 0;
  for (const auto& [k, n] : kConfigurations) {
    const Problem problem = random_problem(k, n, k + n);
    Emulation emulation(gpu_of(fixture.device().info()));
    const emulator::Result result =
        emulation.launch(fixture.build(GemvCoalesced{k, n}), GemvCoalesced{k, n}.geometry(),
                         {emulation.allocate(4 * std::uint64_t{n}), emulation.upload(problem.a),
                          emulation.upload(problem.x), k, n});
    const std::uint64_t here = result.counters.global_load.requests;
    requests += here;
    tally.check(here != 0, "{} x {}: no load was executed", k, n);
    tally.check(result.status == emulator::Status::Ok, "{} x {}: {}", k, n, first_error(result));
  }
  tally.figure("{} configurations, {} loads of warps, buffers of exactly the sizes needed",
               std::size(kConfigurations), requests);
  return tally.outcome();
}

// P5 ----------------------------------------------------------------------------------------------

Outcome barriers_of_all(Fixture& fixture, const Line&) {
  Tally tally;
  std::size_t kernels = 0;
  each_kernel(fixture, [&](const KernelDescription& kernel, const ptx::Module& module) {
    gates::GateOptions options;
    options.origin = gates::CodeOrigin::Built;
    const ErasedValue spec = kernel.make_spec(kernel.default_values());
    const Dim3 block = kernel.geometry_of(spec.get(), gpu_of(fixture.device().info())).block;
    options.block = {block.x, block.y, block.z};
    const std::vector<Finding> divergence = gates::barrier_safety(module, options);
    const std::vector<Finding> races = gates::shared_race(module, options);
    // Warnings are barriers and accesses that depend on data.
    const bool baseline = kernel.name == GemvCoalesced::kName;
    tally.check(baseline ? divergence.empty() : count_errors(divergence) == 0, "{}: {}",
                kernel.name, divergence.empty() ? "" : to_text(divergence.front()));
    tally.check(baseline ? races.empty() : count_errors(races) == 0, "{}: {}", kernel.name,
                races.empty() ? "" : to_text(races.front()));
    ++kernels;
  });
  gates::GateOptions options;
  options.block = {256, 1, 1};
  const ptx::Module module = fixture.build(GemvCoalesced{});
  for (const std::size_t barrier : {0u, 1u}) {
    ptx::Module without = module;
    remove_barrier(without, barrier);
    tally.check(count_rule(gates::shared_race(without, options), "shared-race") != 0,
                "no race is found without barrier {}", barrier);
    ptx::Module divergent = without;
    const std::size_t at = find_statement(module.functions.front(), ptx::Op::bar_sync, barrier);
    insert_before(divergent, at, "@!%p0 bra after_barrier;\nbar.sync 0;\nafter_barrier:\n");
    tally.check(count_rule(gates::barrier_safety(divergent, options), "barrier-divergence") != 0,
                "barrier {} in a divergent branch is not found", barrier);
  }
  tally.figure("{} kernels without error; removed and divergent barriers are found", kernels);
  return tally.outcome();
}

// Bug classes
// ---------------------------------------------------------------------------------------

std::vector<Finding> all_findings(std::string_view text) {
  try {
    return gates::run(ptx::parse(text));
  } catch (const Error& error) {
    Finding finding;
    finding.rule = error.code;
    return {finding};
  }
}

Outcome bug_classes(Fixture& fixture, const Line&) {
  Tally tally;
  for (const BugClass& bug : bug_class_fixtures()) {
    const std::string_view defect = fixture.changed() ? bug.right : bug.wrong;
    tally.check(count_rule(all_findings(defect), bug.rule) != 0, "{}: no {} in the defect",
                bug.name, bug.rule);
    tally.check(count_rule(all_findings(bug.right), bug.rule) == 0,
                "{}: {} is reported without the defect", bug.name, bug.rule);
  }
  tally.figure("{} classes, each with its defect and without", bug_class_fixtures().size());
  return tally.outcome();
}

// Regression baseline
// ---------------------------------------------------------------------------------

bool has(const std::vector<analysis::Change>& changes, analysis::ChangeKind kind) {
  return std::ranges::any_of(changes,
                             [&](const analysis::Change& change) { return change.kind == kind; });
}

Outcome baseline(Fixture& fixture, const Line&) {
  Tally tally;
  const ptx::Module before = GemvCoalesced{}.build(fixture.target()).module();
  tally.check(analysis::diff(before, before).empty(), "equal modules have changes");
  const auto expect = [&](analysis::ChangeKind kind, auto&& edit, std::string_view what) {
    ptx::Module after = before;
    if (!fixture.changed()) edit(after);
    const std::vector<analysis::Change> changes = analysis::diff(before, after);
    tally.check(has(changes, kind), "{}: no change of kind {} among {}", what, name(kind),
                changes.size());
  };
  expect(
      analysis::ChangeKind::Barrier, [](ptx::Module& m) { remove_barrier(m, 0); },
      "a removed barrier");
  expect(analysis::ChangeKind::AddressWidth, widen_shared_address, "a 64-bit shared address");
  expect(
      analysis::ChangeKind::Function,
      [](ptx::Module& m) { m.functions.front().name = m.names.intern("gemv_renamed"); },
      "a renamed kernel");
  expect(
      analysis::ChangeKind::Rounding,
      [](ptx::Module& m) {
        set_modifier(m, ptx::Op::fma_f32, ptx::Field::Rounding, ptx::Modifier::rz);
      },
      "another rounding");
  return tally.outcome();
}

constexpr Line kLines[] = {
    {"1.P1",
     Section::Static,
     4,
     "every shared access has a 32-bit address",
     "operands of all kernels of the catalog; a load and a store with 64 bits are found",
     Means::Unit,
     shared_addresses,
     {"the base of a shared load has 64 bits", widen_shared_address, nullptr},
     "ptxgen check kernel.ptx"},
    {"1.P2",
     Section::Static,
     4,
     "loops have a dominating header, a conditional back edge, an exit",
     "control flow of all kernels of the catalog",
     Means::Unit,
     loops,
     {"a branch back to a header has no guard",
      [](ptx::Module& m) {
        ptx::Function& f = m.functions.front();
        const std::size_t bras = count_statements(f, ptx::Op::bra);
        for (std::size_t i = 0; i < bras; ++i) {
          ptx::Instruction& branch = f.body[find_statement(f, ptx::Op::bra, i)];
          const std::uint32_t label = f.operands_of(branch)[0].id;
          for (std::size_t s = 0; s < f.body.size(); ++s) {
            if (&f.body[s] == &branch) break;
            if (f.body[s].kind == ptx::StatementKind::Label &&
                f.operands_of(f.body[s])[0].id == label) {
              branch.guard = {};
              return;
            }
          }
        }
      },
      nullptr},
     "ptxgen check kernel.ptx"},
    {"1.P3",
     Section::Static,
     4,
     "one entry with the kernel's name and its parameters in order",
     "functions of all kernels of the catalog; names and types of gemv_coalesced",
     Means::Unit,
     entries,
     {"two parameters change places",
      [](ptx::Module& m) {
        std::vector<ptx::Variable>& p = m.functions.front().parameters;
        if (p.size() > 4) std::swap(p[2], p[3]);
      },
      nullptr},
     "ptxgen check kernel.ptx --entry NAME"},
    {"1.P4",
     Section::Static,
     4,
     "every global access is in bounds",
     "executed by the emulator in six configurations, one column and one row among them",
     Means::Emulator,
     bounds,
     {"the guard of columns beyond the matrix is removed",
      [](ptx::Module& m) {
        remove_branch(m, count_statements(m.functions.front(), ptx::Op::bra) - 1);
      },
      nullptr},
     "ptxgen run"},
    {"1.P5",
     Section::Static,
     4,
     "no race in shared memory and no divergent barrier",
     "the gates on all kernels of the catalog; removed barriers and barriers in a divergent branch "
     "are found",
     Means::Unit,
     barriers_of_all,
     {"the first barrier is removed", [](ptx::Module& m) { remove_barrier(m, 0); }, nullptr},
     "ptxgen check kernel.ptx --block 256"},
    {"1.B",
     Section::Static,
     0,
     "the bug classes of the specification are told apart",
     "each with a defect that is found and a correct twin",
     Means::Unit,
     bug_classes,
     {"the defects are replaced by their correct twins"},
     "ptxgen check kernel.ptx"},
    {"1.R",
     Section::Static,
     0,
     "a semantic difference to the baseline is found",
     "a removed barrier, a 64-bit shared address, another name, another rounding",
     Means::Unit,
     baseline,
     {"nothing is changed"},
     "ptxgen diff a.ptx b.ptx"},
};

}  // namespace
}  // namespace static_analysis

std::span<const Line> static_lines() { return static_analysis::kLines; }

}  // namespace ptxgen::qa
