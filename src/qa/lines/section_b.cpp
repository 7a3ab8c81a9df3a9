// src/qa/lines/section_b.cpp - B: the kernel gemv_coalesced
#include <algorithm>
#include <array>
#include <concepts>

#include "ptxgen/kernels.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "qa/edits.hpp"
#include "qa/fixture.hpp"
#include "qa/gemv_check.hpp"
#include "qa/lines/lines.hpp"
#include "qa/tally.hpp"
#include "support/random_values.hpp"

namespace ptxgen::qa {

namespace section_b {
namespace {

// The public headers alone, included above, declare the kernel as a described one.
static_assert(Described<GemvCoalesced>);
static_assert(std::same_as<GemvCoalesced::Operands, GemvVectors>);

const KernelDescription* find(const Fixture& fixture, std::string_view name) {
  const auto found = std::ranges::find(fixture.catalog, name, &KernelDescription::name);
  return found == fixture.catalog.end() ? nullptr : &*found;
}

void remove_kernel(Fixture& fixture) {
  std::erase_if(fixture.catalog,
                [](const KernelDescription& k) { return k.name == GemvCoalesced::kName; });
}

Outcome type_exists(Fixture& fixture, const Line&) {
  Tally tally;
  const KernelDescription* kernel = find(fixture, GemvCoalesced::kName);
  if (tally.check(kernel != nullptr, "the catalog has no gemv_coalesced")) {
    tally.check(kernel->type == kDescription<GemvCoalesced>.type,
                "the catalog's gemv_coalesced has another C++ type");
    tally.figure("{} of {} kernels", kernel->name, fixture.catalog.size());
  }
  return tally.outcome();
}

Outcome models_concept(Fixture& fixture, const Line&) {
  Tally tally;
  const KernelDescription* kernel = find(fixture, GemvCoalesced::kName);
  if (!tally.check(kernel != nullptr, "the catalog has no gemv_coalesced")) return tally.outcome();
  const std::array<std::uint64_t, 2> values{300, 70};
  const ErasedValue spec = kernel->make_spec(values);
  tally.check(kernel->geometry_of(spec.get(), gpu_of(fixture.device().info())).grid.x == 1,
              "the geometry of n = 70 is not one block");
  tally.check(kernel->cost_of(spec.get()).flops == 2 * 300 * 70, "the cost is not 2 k n");
  const ptx::Module module = kernel->build_of(spec.get(), fixture.target());
  tally.check(module.functions.size() == 1 && module.functions.front().parameters.size() == 5,
              "the built module has not one entry with 5 parameters");
  return tally.outcome();
}

Outcome in_public_header(Fixture& fixture, const Line&) {
  Tally tally;
  const KernelDescription* kernel = find(fixture, GemvCoalesced::kName);
  const auto typed = GemvCoalesced{300, 70}.build(fixture.target());
  if (tally.check(kernel != nullptr, "the catalog has no gemv_coalesced")) {
    const std::array<std::uint64_t, 2> values{300, 70};
    tally.check(kernel->build(values, fixture.target()).functions.size() == 1 &&
                    ptx::equal(kernel->build(values, fixture.target()), typed.module()),
                "the typed kernel of the public header is not the catalog's");
  }
  return tally.outcome();
}

constexpr std::uint32_t kShapes[][2] = {{1, 1},       {256, 256}, {255, 257}, {257, 255},
                                        {16, 8},      {127, 63},  {4096, 1},  {1, 4096},
                                        {4096, 4096}, {300, 70},  {1024, 33}, {8192, 8192}};

Outcome emits(Fixture& fixture, const Line&) {
  Tally tally;
  const Assembler assembler(fixture.settings());
  std::size_t assembled = 0;
  for (const auto& [k, n] : kShapes) {
    const ptx::Module built = fixture.build(GemvCoalesced{k, n});
    const std::string text = ptx::print(built);
    const ptx::Module parsed = ptx::parse(text);
    tally.check(ptx::equal(built, parsed), "{} x {}: the parsed text differs: {}", k, n,
                ptx::difference(built, parsed));
    const std::vector<Finding> findings = ptx::verify(parsed);
    tally.check(findings.empty(), "{} x {}: {}", k, n,
                findings.empty() ? std::string() : to_text(findings.front()));
    if (!assembler.available()) continue;
    AssembleOptions options;
    options.target = parsed.target;
    tally.check(!assembler.assemble(text, options).cubin.empty(), "{} x {}: no cubin", k, n);
    ++assembled;
  }
  tally.figure("{} shapes emitted, parsed, verified; {} assembled", std::size(kShapes), assembled);
  return tally.outcome();
}

Outcome one_entry(Fixture& fixture, const Line&) {
  Tally tally;
  const ptx::Module module = fixture.build(GemvCoalesced{});
  std::size_t entries = 0;
  std::size_t named = 0;
  for (const ptx::Function& function : module.functions) {
    if (!function.entry) continue;
    ++entries;
    named += function.linkage == ptx::Linkage::Visible &&
             module.text(function.name) == GemvCoalesced::kName;
  }
  tally.check(entries == 1, "the module has {} entries", entries);
  tally.check(named == 1, "{} entries are .visible and named gemv_coalesced", named);
  return tally.outcome();
}

Outcome shared_array(Fixture& fixture, const Line&) {
  Tally tally;
  const ptx::Module module = fixture.build(GemvCoalesced{});
  std::size_t arrays = 0;
  std::uint64_t bytes = 0;
  for (const ptx::Variable& variable : module.functions.front().variables) {
    if (variable.space != ptx::Space::Shared) continue;
    ++arrays;
    bytes += ptx::size_in_bytes(variable);
  }
  tally.check(arrays == 1 && bytes == 1024, "{} shared arrays with {} bytes, expected 1 with 1024",
              arrays, bytes);
  const Problem problem = random_problem(513, 300, 6);
  Emulation emulation(gpu_of(fixture.device().info()));
  const emulator::Result result = emulation.launch(
      module, GemvCoalesced{problem.k, problem.n}.geometry(),
      {emulation.allocate(4 * std::uint64_t{problem.n}), emulation.upload(problem.a),
       emulation.upload(problem.x), problem.k, problem.n});
  const std::uint64_t accesses =
      result.counters.shared_load.requests + result.counters.shared_store.requests;
  tally.check(accesses != 0, "no access to shared memory was executed");
  tally.check(result.status == emulator::Status::Ok, "{}", first_error(result));
  tally.figure("1024 bytes, {} shared accesses of warps in bounds", accesses);
  return tally.outcome();
}

Outcome barriers(Fixture& fixture, const Line&) {
  constexpr std::uint32_t kRows = 513;  // three tiles
  constexpr std::uint32_t kColumns = 300;
  const LaunchGeometry geometry = GemvCoalesced{kRows, kColumns}.geometry();
  const Problem problem = random_problem(kRows, kColumns, 7);
  const ptx::Module module = fixture.build(GemvCoalesced{kRows, kColumns});
  const auto run = [&](const ptx::Module& code) {
    Emulation emulation(gpu_of(fixture.device().info()));
    return emulation.launch(
        code, geometry,
        {emulation.allocate(4 * std::uint64_t{kColumns}), emulation.upload(problem.a),
         emulation.upload(problem.x), kRows, kColumns});
  };
  Tally tally;
  const emulator::Result result = run(module);
  const std::uint64_t expected = 2 * ((kRows + 255) / 256) * geometry.grid.x * (256 / 32);
  tally.check(result.counters.barriers == expected,
              "warps executed {} barriers, two per tile are {}", result.counters.barriers,
              expected);
  tally.check(result.status == emulator::Status::Ok, "{}", first_error(result));
  for (const std::size_t removed : {0u, 1u}) {
    ptx::Module without = module;
    remove_barrier(without, removed);
    tally.check(count_rule(run(without), emulator::Rule::SharedRace) != 0,
                "without barrier {} no race is found", removed);
  }
  tally.figure("{} barriers of warps; a race is found without either", expected);
  return tally.outcome();
}

Outcome targets(Fixture& fixture, const Line&) {
  Tally tally;
  for (const ptx::Target& target : ptx::targets()) {
    const ptx::Module module = fixture.build(GemvCoalesced{}, target);
    tally.check(module.target == target.name, "for {} the module has .target {}", target.name,
                module.target);
    const std::vector<Finding> findings = ptx::verify(module);
    tally.check(count_errors(findings) == 0, "{}: {}", target.name, first_error(findings));
  }
  // A kernel that needs sm_80 on sm_75.
  const ptx::Module newer = GemmMma{}.build(ptx::target("sm_80")).module();
  ptx::VerifyOptions older;
  older.target = "sm_75";
  const std::vector<Finding> refused = ptx::verify(newer, older);
  tally.check(
      std::ranges::any_of(refused, [](const Finding& f) { return f.rule == "target-lacks"; }),
      "cp.async is not refused for sm_75");
  tally.figure("{} targets", ptx::targets().size());
  return tally.outcome();
}

// Sizes at the edges of tiles and blocks, primes, and random ones.
std::vector<std::array<std::uint32_t, 2>> property_shapes(bool full) {
  std::vector<std::array<std::uint32_t, 2>> shapes;
  constexpr std::uint32_t kEdges[] = {1, 2, 3, 31, 127, 255, 256, 257};
  for (const std::uint32_t k : kEdges) {
    for (const std::uint32_t n : kEdges) shapes.push_back({k, n});
  }
  const std::size_t random = full ? 200 : 30;
  const std::vector<float> numbers = random_values(2 * random, 2024);
  const auto size = [](float number) {
    return 1 + static_cast<std::uint32_t>((number * 0.5f + 0.5f) * 599.0f);
  };
  for (std::size_t i = 0; i < random; ++i) {
    shapes.push_back({size(numbers[2 * i]), size(numbers[2 * i + 1])});
  }
  return shapes;
}

Outcome property(Fixture& fixture, const Line&) {
  Tally tally;
  double worst = 0;
  std::uint64_t seed = 10;
  const auto shapes = property_shapes(fixture.full());
  for (const auto& [k, n] : shapes) {
    worst = std::max(worst, check_both_kernels(tally, fixture, random_problem(k, n, ++seed)));
  }
  tally.figure("{} shapes, largest error / bound {:.3f}, seeds 11 to {}", shapes.size(), worst,
               seed);
  return tally.outcome();
}

constexpr Mutant kNoKernel{"the catalog has no row of gemv_coalesced", nullptr, remove_kernel};

constexpr Line kLines[] = {
    {"B1", Section::B, 1, "the kernel's type exists", "a row of the catalog with the C++ type",
     Means::Unit, type_exists, kNoKernel, "ptxgen list"},
    {"B2", Section::B, 1, "it models the kernel concept",
     "Described<GemvCoalesced> at compile time; geometry, cost and code from the description",
     Means::Unit, models_concept, kNoKernel, "ptxgen list"},
    {"B3", Section::B, 1, "it is reachable from the public header",
     "built by ptxgen/kernels.hpp, equal to the catalog's", Means::Unit, in_public_header,
     kNoKernel, "ptxgen dump gemv_coalesced"},
    {"B4",
     Section::B,
     2,
     "it emits PTX",
     "12 shapes are parsed back, verified, and assembled where an assembler is present",
     Means::Unit,
     emits,
     {"a fused multiply-add gets an address as factor",
      [](ptx::Module& m) {
        if (const ptx::Operand* address = operand_at(m, ptx::Op::mad_wide, 0, 0)) {
          const ptx::Operand copy = *address;
          set_operand(m, ptx::Op::fma_f32, 0, 1, copy);
        }
      },
      nullptr},
     "ptxgen dump gemv_coalesced | ptxgen check -"},
    {"B5",
     Section::B,
     1,
     "exactly one visible entry has its name",
     "functions of the module",
     Means::Unit,
     one_entry,
     {"the entry is not .visible",
      [](ptx::Module& m) { m.functions.front().linkage = ptx::Linkage::None; }, nullptr},
     "ptxgen check - --entry gemv_coalesced"},
    {"B6",
     Section::B,
     2,
     "one shared array of 1024 bytes, every access in bounds",
     "variables of the module; a run of 513 x 300 with all checks",
     Means::Emulator,
     shared_array,
     {"the array has 1020 bytes",
      [](ptx::Module& m) {
        for (ptx::Variable& v : m.functions.front().variables) {
          if (v.space == ptx::Space::Shared) v.dimensions = {255};
        }
      },
      nullptr},
     "ptxgen run"},
    {"B7",
     Section::B,
     2,
     "two barriers for each tile, reached by all threads",
     "executed barriers are exactly two for each tile and warp; removing either gives a race",
     Means::Emulator,
     barriers,
     {"the second barrier is removed", [](ptx::Module& m) { remove_barrier(m, 1); }, nullptr},
     "ptxgen run"},
    {"B8",
     Section::B,
     1,
     "the target is the requested one",
     "every target of the table; cp.async is refused for sm_75",
     Means::Unit,
     targets,
     {"every module says sm_75", [](ptx::Module& m) { m.target = "sm_75"; }, nullptr},
     "ptxgen dump gemv_coalesced --target sm_90"},
    {"B9", Section::B, 2, "its unit tests pass", "ctest -L gemv", Means::Record, by_record,
     kFailedResult, "ctest -L gemv", "label gemv"},
    {"B10",
     Section::B,
     2,
     "random sizes are right",
     "k and n of 1, primes, 255, 256, 257 and random ones within the bound of fp64, guards and all "
     "checks of the emulator",
     Means::Emulator,
     property,
     {"the guard of columns beyond the matrix is removed",
      [](ptx::Module& m) {
        remove_branch(m, count_statements(m.functions.front(), ptx::Op::bra) - 1);
      },
      nullptr},
     "ptxgen verify gemv_coalesced --cases"},
};

}  // namespace
}  // namespace section_b

std::span<const Line> kernel_lines() { return section_b::kLines; }

}  // namespace ptxgen::qa
