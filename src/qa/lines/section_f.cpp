// src/qa/lines/section_f.cpp - F: the GEMV again and again
#include <algorithm>
#include <bit>
#include <limits>

#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/support/error.hpp"
#include "qa/edits.hpp"
#include "qa/fixture.hpp"
#include "qa/gemv_check.hpp"
#include "qa/lines/lines.hpp"
#include "qa/tally.hpp"

namespace ptxgen::qa {

namespace section_f {
namespace {

// Device memory of one problem.
struct Memory {
  Memory(const Context& context, const Problem& problem)
      : y(context, problem.n), a(context, problem.a), x(context, problem.x) {}
  [[nodiscard]] std::vector<float> result() const {
    std::vector<float> values(y.size());
    y.read(values);
    return values;
  }
  Buffer<f32> y, a, x;
};

Outcome same_bits(Fixture& fixture, const Line&) {
  Tally tally;
  Problem problem = random_problem(300, 40, 21);
  const Stream stream(fixture.context());
  for (const GemvChoice choice : {GemvChoice::Auto, GemvChoice::Coalesced, GemvChoice::Strided}) {
    const Launcher launcher = fixture.launcher(choice);
    Memory memory(fixture.context(), problem);
    std::vector<float> first;
    std::size_t different = 0;
    for (int i = 0; i < 1000; ++i) {
      if (fixture.changed() && i == 999) {
        problem.x[7] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(problem.x[7]) ^ 1u << 20);
        memory.x.write(problem.x);
      }
      memory.y.fill_bytes(0xff, &stream);
      launcher.gemv(memory.y, memory.a, memory.x, problem.k, problem.n, stream);
      stream.synchronize();
      const std::vector<float> y = memory.result();
      if (i == 0) first = y;
      different += different_bits(y, first);
    }
    tally.check(different == 0, "{}: {} elements of 1000 launches differ", to_string(choice),
                different);
    check_gemv(tally, random_problem(300, 40, 21), first, 300, to_string(choice));
  }
  tally.figure("1000 launches each of the planned, the coalesced and the strided kernel");
  return tally.outcome();
}

Outcome no_state(Fixture& fixture, const Line&) {
  Tally tally;
  constexpr std::uint32_t kShapes[][2] = {{300, 70}, {1, 1},   {70, 300},
                                          {300, 70}, {257, 5}, {1, 1}};
  const Launcher used = fixture.launcher();
  const Stream stream(fixture.context());
  std::uint64_t seed = 200;
  for (const auto& [k, n] : kShapes) {
    const Problem problem = random_problem(k, n, ++seed);
    const auto run = [&](const Launcher& launcher) {
      Memory memory(fixture.context(), problem);
      memory.y.fill_bytes(0xff);
      launcher.gemv(memory.y, memory.a, memory.x, problem.k, problem.n, stream);
      stream.synchronize();
      return memory.result();
    };
    const std::vector<float> again = run(used);
    const Launcher fresh = fixture.launcher();
    tally.check(different_bits(again, run(fresh)) == 0,
                "{} x {}: a used launcher and a fresh one differ", k, n);
    check_gemv(tally, problem, again, k, "gemv");
    const GemvRun built = fixture.gemv<GemvCoalesced>(problem);
    check_gemv(tally, problem, built.y, coalesced_roundings(problem), "gemv_coalesced");
  }
  return tally.outcome();
}

Outcome ten_thousand(Fixture& fixture, const Line&) {
  Tally tally;
  constexpr std::uint32_t kRows = 33;
  constexpr std::uint32_t kColumns = 9;
  const Launcher launcher = fixture.launcher();
  const Stream stream(fixture.context());
  std::vector<Memory> memory;
  std::vector<std::vector<float>> expected;
  for (std::uint64_t i = 0; i < 8; ++i) {
    const Problem problem = random_problem(kRows, kColumns, 300 + i);
    memory.emplace_back(fixture.context(), problem);
    launcher.gemv(memory.back().y, memory.back().a, memory.back().x, kRows, kColumns, stream);
    stream.synchronize();
    expected.push_back(memory.back().result());
    check_gemv(tally, problem, expected.back(), kRows, "gemv");
  }
  std::size_t wrong = 0;
  for (int iteration = 0; iteration < 1250; ++iteration) {
    for (Memory& one : memory) {
      one.y.fill_bytes(0xff, &stream);
      launcher.gemv(one.y, one.a, one.x, kRows, kColumns, stream);
    }
    if (fixture.changed() && iteration == 700) {
      launcher.gemv(memory[3].y, memory[2].a, memory[3].x, kRows, kColumns, stream);
    }
    stream.synchronize();
    for (std::size_t i = 0; i < memory.size(); ++i) {
      wrong += different_bits(memory[i].result(), expected[i]) != 0;
    }
  }
  tally.check(wrong == 0, "{} of 10000 results differ from the first ones", wrong);
  tally.figure("10000 calls of {} x {}, all results compared", kRows, kColumns);
  return tally.outcome();
}

Outcome no_leak(Fixture& fixture, const Line&) {
  if (!fixture.facts.gpu) return skipped(Need::Gpu, "the driver's free memory is a GPU's");
  Tally tally;
  const Problem problem = random_problem(33, 9, 51);
  const Launcher launcher = fixture.launcher();
  const Stream stream(fixture.context());
  std::vector<Memory> kept;
  const auto call = [&] {
    Memory memory(fixture.context(), problem);
    launcher.gemv(memory.y, memory.a, memory.x, problem.k, problem.n, stream);
    stream.synchronize();
    if (fixture.changed()) kept.push_back(std::move(memory));
  };
  call();
  fixture.context().synchronize();
  const std::uint64_t before = fixture.context().memory().free;
  for (int i = 0; i < 10000; ++i) call();
  fixture.context().synchronize();
  const std::uint64_t after = fixture.context().memory().free;
  tally.check(before == after, "{} bytes were free before, {} after", before, after);
  return tally.outcome();
}

template <class Work>
std::string code_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.code;
  }
  return "no error";
}

Outcome invalid_input(Fixture& fixture, const Line&) {
  Tally tally;
  const Problem problem = random_problem(20, 30, 31);
  const Launcher launcher = fixture.launcher();
  const Stream stream(fixture.context());
  Memory memory(fixture.context(), problem);
  const DeviceSpan<f32> y = memory.y;
  const DeviceSpan<f32> x = memory.x;
  const auto expect = [&](std::string_view code, DeviceSpan<f32> out, DeviceSpan<f32> matrix,
                          DeviceSpan<f32> vector, std::uint32_t k, std::uint32_t n) {
    const std::string found = code_of([&] {
      if (fixture.changed()) {
        launcher.gemv(y, memory.a, x, problem.k, problem.n, stream);
      } else {
        launcher.gemv(out, matrix, vector, k, n, stream);
      }
    });
    tally.check(found == code, "expected the error '{}', got '{}'", code, found);
  };
  expect("null-pointer", {}, memory.a, x, 20, 30);
  expect("null-pointer", y, {}, x, 20, 30);
  expect("buffer-size", y, memory.a, x.subspan(0, 19), 20, 30);
  expect("buffer-size", y, memory.a, x, 20, 31);
  expect("empty-grid", y, memory.a, x, 20, 0);
  expect("aliasing", x, memory.a, x, 20, 20);
  expect("misaligned", {{y.address.value + 2}, 29}, memory.a, x, 20, 29);
  const GemvCoalesced::KernelType kernel = GemvCoalesced{20, 30}.build(fixture.target());
  const std::string limits = code_of([&] {
    launcher.launch(kernel, {.grid = {1, 1, 1}, .block = {fixture.changed() ? 256u : 4096u, 1, 1}},
                    stream, y, DeviceSpan<f32>(memory.a), x, 20u, 30u);
  });
  tally.check(limits == "launch-limits", "a block of 4096 threads gives '{}'", limits);
  memory.y.fill_bytes(0xff);
  launcher.gemv(y, memory.a, x, problem.k, problem.n, stream);
  stream.synchronize();
  check_gemv(tally, problem, memory.result(), problem.k, "the next valid call");
  tally.figure("8 refused calls, each by its code; the next valid one is right");
  return tally.outcome();
}

constexpr Line kLines[] = {
    {"F1",
     Section::F,
     2,
     "the same input gives the same bits a thousand times",
     "the planned, the coalesced and the strided kernel; y is NaN before each launch",
     Means::Emulator,
     same_bits,
     {"one bit of x changes before the last launch"},
     {}},
    {"F2",
     Section::F,
     2,
     "no state is kept between calls",
     "a sequence of shapes against fresh launchers, bit for bit; y is NaN before",
     Means::Emulator,
     no_state,
     {"the kernel adds to what y was", accumulate_into_output, nullptr},
     {}},
    {"F3",
     Section::F,
     2,
     "ten thousand calls are right",
     "every result compared",
     Means::Emulator,
     ten_thousand,
     {"one call of iteration 700 gets another matrix"},
     {}},
    {"F4",
     Section::F,
     2,
     "ten thousand calls leak no memory",
     "the driver's free bytes before and after are equal",
     Means::Gpu,
     no_leak,
     {"the buffers are kept"},
     {}},
    {"F5",
     Section::F,
     2,
     "invalid input is a typed error, and the next call is right",
     "eight refusals by their code",
     Means::Unit,
     invalid_input,
     {"the calls are valid"},
     {}},
};

}  // namespace
}  // namespace section_f

std::span<const Line> stability_lines() { return section_f::kLines; }

}  // namespace ptxgen::qa
