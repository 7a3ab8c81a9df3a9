// src/qa/lines/section_c.cpp - C: the kernel in the launcher
#include <algorithm>
#include <array>

#include "ptxgen/kernels.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/support/error.hpp"
#include "qa/edits.hpp"
#include "qa/fixture.hpp"
#include "qa/gemv_check.hpp"
#include "qa/lines/lines.hpp"
#include "qa/tally.hpp"

namespace ptxgen::qa {

namespace section_c {
namespace {

// A launched product: its record and c.
struct Product {
  LaunchRecord record;
  std::vector<float> c;
};

// c[m x n] = ones[m x k] b[k x n] by Launcher::matmul.
Product multiply(Fixture& fixture, const Launcher& launcher, const Problem& problem,
                 std::uint32_t rows) {
  const Stream stream(fixture.context());
  std::vector<float> left;
  for (std::uint32_t i = 0; i < rows; ++i) {
    left.insert(left.end(), problem.x.begin(), problem.x.end());
  }
  const Buffer<f32> a(fixture.context(), left);
  const Buffer<f32> b(fixture.context(), problem.a);
  Buffer<f32> c(fixture.context(), std::uint64_t{rows} * problem.n);
  c.fill_bytes(0xff);
  Product product;
  product.record = launcher.matmul(c, a, b, {.m = rows, .k = problem.k, .n = problem.n}, stream);
  stream.synchronize();
  product.c.resize(c.size());
  c.read(product.c);
  return product;
}

Outcome enumerated(Fixture& fixture, const Line&) {
  Tally tally;
  const std::string_view name = fixture.changed() ? "coalesced_gemv" : "coalesced";
  const GemvChoice choice = ptxgen::gemv_choice(name);
  tally.check(to_string(choice) == name, "the dispatcher calls '{}' {}", name, to_string(choice));
  const Launcher launcher = fixture.launcher(choice);
  const ChosenKernel chosen = launcher.choose(GemvProblem{.k = 300, .n = 70});
  if (tally.check(chosen.kernel != nullptr, "no kernel was chosen for '{}'", name)) {
    tally.check(chosen.kernel->name == GemvCoalesced::kName, "'{}' is served by {}", name,
                chosen.kernel->name);
  }
  tally.figure("{}", gemv_choice_names());
  return tally.outcome();
}

Outcome dispatch(Fixture& fixture, const Line&) {
  Tally tally;
  const Launcher launcher = fixture.launcher(GemvChoice::Coalesced);
  const Problem problem = random_problem(70, 90, 31);
  const Product one = multiply(fixture, launcher, problem, fixture.changed() ? 2 : 1);
  tally.check(one.record.kernel == GemvCoalesced::kName && one.record.launches == 1,
              "one row was served by {} in {} launches", one.record.kernel, one.record.launches);
  const Launcher automatic = fixture.launcher();
  const Product planned = multiply(fixture, automatic, problem, fixture.changed() ? 2 : 1);
  tally.check(planned.record.kernel == "gemv", "one row was served by {}", planned.record.kernel);
  const Product two = multiply(fixture, automatic, problem, 2);
  tally.check(two.record.kernel.substr(0, 4) == "gemm", "two rows were served by {}",
              two.record.kernel);
  tally.figure("1 row: {} and {}; 2 rows: {}", one.record.kernel, planned.record.kernel,
               two.record.kernel);
  return tally.outcome();
}

Outcome keys(Fixture& fixture, const Line&) {
  Tally tally;
  const Launcher launcher = fixture.launcher();
  const ModuleCache& cache = launcher.cache();
  const ptx::Module code = GemvCoalesced{}.build(fixture.target()).module();
  ModuleKey base = cache.key("gemv_coalesced");
  base.values = {300, 70};
  std::vector<ModuleKey> keys{base};
  const auto add = [&](const ModuleKey& key) { keys.push_back(fixture.changed() ? base : key); };
  ModuleKey other = base;
  other.values = {300, 71};
  add(other);
  other.values = {301, 70};
  add(other);
  other = base;
  other.target += 1;
  add(other);
  other = base;
  other.plan = 1;
  add(other);
  for (ModuleOptions options :
       {ModuleOptions{.max_registers = 64}, ModuleOptions{.optimization = 2},
        ModuleOptions{.line_info = true}}) {
    ModuleKey key = cache.key("gemv_coalesced", options);
    key.values = base.values;
    add(key);
  }
  ModuleKey named = cache.key("gemv_strided");
  named.values = base.values;
  add(named);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      tally.check(!(keys[i] == keys[j]) && hashed(keys[i]).hash != hashed(keys[j]).hash,
                  "requests {} and {} have one key", j, i);
    }
  }
  ModuleKey again = cache.key("gemv_coalesced");
  again.values = {300, 70};
  tally.check(again == base, "equal requests have different keys");
  tally.figure("{} requests that differ in size, target, plan, options or kernel", keys.size());
  return tally.outcome();
}

Outcome geometry(Fixture& fixture, const Line&) {
  Tally tally;
  const Launcher launcher = fixture.launcher(GemvChoice::Coalesced);
  for (const std::uint32_t n : {1u, 255u, 256u, 257u, 4096u}) {
    const std::uint32_t launched = fixture.changed() ? n + 256 : n;
    const Problem problem = random_problem(3, launched, n);
    const Product product = multiply(fixture, launcher, problem, 1);
    const LaunchGeometry& found = product.record.geometry;
    tally.check(found.block == Dim3{256, 1, 1}, "n = {}: the block has {} x {} x {} threads", n,
                found.block.x, found.block.y, found.block.z);
    tally.check(found.grid == Dim3{(n + 255) / 256, 1, 1}, "n = {}: the grid has {} blocks, not {}",
                n, found.grid.x, (n + 255) / 256);
  }
  return tally.outcome();
}

Outcome shared_bytes(Fixture& fixture, const Line&) {
  Tally tally;
  const ptx::Module code = fixture.build(GemvCoalesced{});
  ModuleOptions unchecked;
  unchecked.gates = false;
  const Function function =
      Module::load(fixture.context(), code, unchecked).function(GemvCoalesced::kName);
  tally.check(function.resources().static_shared == 1024, "{} static bytes, not 1024",
              function.resources().static_shared);
  const Launcher launcher = fixture.launcher(GemvChoice::Coalesced);
  for (const std::uint32_t k : {1u, 300u, 16384u}) {
    const Product product = multiply(fixture, launcher, random_problem(k, 4, k), 1);
    tally.check(product.record.geometry.dynamic_shared_bytes == 0, "k = {}: {} dynamic bytes", k,
                product.record.geometry.dynamic_shared_bytes);
  }
  tally.figure("{} static bytes, 0 dynamic for k of 1, 300 and 16384",
               function.resources().static_shared);
  return tally.outcome();
}

Outcome without_gpu(Fixture& fixture, const Line&) {
  Tally tally;
  Settings settings = fixture.settings();
  settings.device = fixture.changed() ? "cuda:0" : "auto";
  settings.log = "off";
  settings.libcuda_path = "/nonexistent/libcuda.so.1";
  settings.search_usual_places = false;
  const Problem problem = random_problem(70, 90, 33);
  const auto run = [&](const std::string& name) {
    const Device device = Device::open(name, settings);
    const Context context(device);
    LauncherOptions options;
    options.settings = settings;
    options.cache.mode = CacheMode::MemoryOnly;
    const Launcher launcher(context, options);
    const Stream stream(context);
    const Buffer<f32> a(context, problem.a);
    const Buffer<f32> x(context, problem.x);
    Buffer<f32> y(context, problem.n);
    y.fill_bytes(0xff);
    const LaunchRecord record = launcher.gemv(y, a, x, problem.k, problem.n, stream);
    stream.synchronize();
    std::vector<float> result(problem.n);
    y.read(result);
    check_gemv(tally, problem, result, problem.k, record.kernel);
    tally.figure("{}: {}", device.info().name, record.kernel);
  };
  run(settings.device);
  run(fixture.changed() ? "cuda:0" : "host");
  if (fixture.facts.gpu) tally.figure("this program also runs on {}", fixture.device().info().name);
  return tally.outcome();
}

Outcome integration(Fixture& fixture, const Line&) {
  Tally tally;
  Problem problem = random_problem(513, 300, 34);
  const Launcher launcher = fixture.launcher();
  for (const std::uint32_t rows : {1u, 3u}) {
    Problem input = problem;
    if (fixture.changed()) input.a[513 * 150] += 4;
    const Product product = multiply(fixture, launcher, input, rows);
    for (std::uint32_t row = 0; row < rows; ++row) {
      const auto from = product.c.begin() + std::ptrdiff_t{row} * problem.n;
      check_gemv(tally, problem, {from, from + problem.n}, problem.k, product.record.kernel);
    }
  }
  tally.figure("on {}", fixture.device().info().name);
  return tally.outcome();
}

constexpr Line kLines[] = {
    {"C1",
     Section::C,
     1,
     "the dispatcher enumerates the kernel",
     "a choice by name, which serves a problem with gemv_coalesced",
     Means::Unit,
     enumerated,
     {"it is asked for by another name"},
     "ptxgen gemv -p k=300 -p n=70 --impl coalesced"},
    {"C2",
     Section::C,
     2,
     "one row launches the GEMV family, two rows do not",
     "the launch records of matmul",
     Means::Emulator,
     dispatch,
     {"the product of one row gets two"},
     "ptxgen gemv -p k=70 -p n=90 --json"},
    {"C3",
     Section::C,
     1,
     "different sizes, targets, options and kernels have different keys",
     "pairs of keys, and equal ones for equal requests",
     Means::Unit,
     keys,
     {"all requests are the first one"},
     {}},
    {"C4",
     Section::C,
     2,
     "the block has 256 threads and the grid ceil(n / 256) blocks",
     "launch records for n of 1, 255, 256, 257 and 4096",
     Means::Emulator,
     geometry,
     {"every matrix has 256 columns more"},
     "ptxgen gemv -p k=3 -p n=257 --impl coalesced --json"},
    {"C5",
     Section::C,
     2,
     "1024 bytes of static shared memory, none dynamic",
     "resources of the loaded function; launch records for three k",
     Means::Emulator,
     shared_bytes,
     {"the shared array has 2048 bytes",
      [](ptx::Module& m) {
        for (ptx::Variable& v : m.functions.front().variables) {
          if (v.space == ptx::Space::Shared) v.dimensions = {512};
        }
      },
      nullptr},
     "ptxgen assemble - --target sm_89 --json"},
    {"C6",
     Section::C,
     2,
     "the dispatcher works with and without a GPU",
     "one program: without any libcuda the emulator and the host serve it, within the bound of "
     "fp64",
     Means::Unit,
     without_gpu,
     {"the device is cuda:0 although there is no libcuda"},
     "PTXGEN_LIBCUDA_PATH=/none ptxgen gemv -p k=70 -p n=90"},
    {"C7",
     Section::C,
     2,
     "products through the launcher are right",
     "matmul of one and of three rows within the bound of fp64; on the emulator, and on the device "
     "where there is one",
     Means::Emulator,
     integration,
     {"one element of the matrix differs from the reference's"},
     "ptxgen gemv -p k=513 -p n=300"},
    {"C8", Section::C, 1, "the build has no warnings",
     "-Wall -Wextra -Wconversion -Werror in every preset, by GCC and Clang", Means::Record,
     by_record, kFailedResult, "cmake --preset release -DPTXGEN_WERROR=ON",
     "case release: ;case clang: "},
    {"C9", Section::C, 2, "clang-tidy has no findings", "of src and include", Means::Record,
     by_record, kFailedResult, "run-clang-tidy -p build/clang", "step clang-tidy"},
};

}  // namespace
}  // namespace section_c

std::span<const Line> integration_lines() { return section_c::kLines; }

}  // namespace ptxgen::qa
