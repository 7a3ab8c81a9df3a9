// tools/accuracy_page.cpp - writes docs/accuracy.md: measured errors of functions and kernels
//
// usage: accuracy_page > docs/accuracy.md           every 2^8-th f32 for the functions
//        accuracy_page --check docs/accuracy.md     0 if no error is larger than the file says; of
//                                                   every 2^12-th f32 and one case in four, unless
//                                                   PTXGEN_TEST_FULL is 1
//        accuracy_page --all [FUNCTION..]           every f32, against the bounds
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include "math_accuracy.hpp"
#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime/launch/verify.hpp"

namespace {

using namespace ptxgen;

constexpr std::uint32_t kPageStride = 1u << 8;
/// A multiple of it: a sample of what the page measured.
constexpr std::uint32_t kEverydayStride = 1u << 12;
/// Other tests verify all cases, every day.
constexpr std::size_t kEverydayCases = 4;

/// The last cell of a line is what was measured; what comes before it is the key.
using Lines = std::map<std::string, double>;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string key_of(const MathBound& bound) {
  const bool precise = bound.accuracy == Accuracy::Precise;
  const std::string absolute = bound.absolute == 0 ? "" : " + " + number(bound.absolute);
  return "| `" + std::string(bound.function) + "` | " + (precise ? "precise" : "approximate") +
         " | " + number(bound.low) + " to " + number(bound.high) + " | " + number(bound.ulp) +
         " ulp" + absolute + " | ";
}

/// Over every `stride`-th f32.
Lines functions(test::MathRig& rig, std::uint32_t stride) {
  Lines lines;
  for (const MathBound& bound : kMathBounds) {
    lines[key_of(bound)] = test::largest_error(rig, bound, stride).ulp;
  }
  return lines;
}

/// Every f32: prints each line of the function and how many values it had.
bool check_function(test::MathRig& rig, std::span<const MathBound> bounds) {
  const std::vector<test::MathError> worst = test::largest_errors(rig, bounds, 1);
  bool good = true;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const bool within = worst[i].ulp <= bounds[i].ulp;
    std::cout << key_of(bounds[i]) << number(worst[i].ulp) << " | " << worst[i].values << " values"
              << (within ? "" : ", BEYOND THE BOUND") << std::endl;
    good = good && within;
  }
  return good;
}

// Checks and counters would take most of the time; fewer launches of the same code have them every
// day.
void run_unchecked(const Context& context) {
  emulator::Options launches = driver::emulated::default_options();
  launches.checks = emulator::RuleSet::none();
  launches.counters = false;
  if (driver::emulated::set_launch_options(context.handle(), launches) != driver::CUDA_SUCCESS) {
    throw std::logic_error("an emulated context takes launch options");
  }
}

/// The functions of these names; without one all.
bool check_all(test::MathRig& rig, std::span<char*> names) {
  run_unchecked(rig.context);
  bool good = true;
  const std::span bounds(kMathBounds);
  for (std::size_t first = 0; first < bounds.size();) {
    const std::string_view function = bounds[first].function;
    std::size_t end = first;
    while (end < bounds.size() && bounds[end].function == function) ++end;
    if (names.empty() || std::find(names.begin(), names.end(), function) != names.end()) {
      good = check_function(rig, bounds.subspan(first, end - first)) && good;
    }
    first = end;
  }
  return good;
}

/// The element type that a case is about: its first word that names one.
std::string type_of(const KernelDescription& kernel, const std::vector<std::uint64_t>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto words = kernel.parameters[i].words;
    if (std::find(words.begin(), words.end(), "f32") != words.end()) {
      return std::string(words[values[i]]);
    }
  }
  return "f32";
}

/// The largest error / bound over a kernel's cases of one type, or over one in `step` of them.
Lines kernels(test::MathRig& rig, std::size_t step) {
  Lines lines;
  std::map<std::string, std::size_t> cases;
  for (const KernelDescription& kernel : catalog()) {
    for (const std::vector<std::uint64_t>& values : kernel.cases()) {
      const std::string key =
          "| `" + std::string(kernel.name) + "` | " + type_of(kernel, values) + " | ";
      if (cases[key]++ % step != 0) continue;
      const Verification result = verify(rig.launcher, rig.context, kernel, values);
      double& worst = lines[key];
      worst = std::max(worst, result.ok() ? result.worst_share : INFINITY);
    }
  }
  return lines;
}

void write(const Lines& lines) {
  for (const auto& [key, measured] : lines) std::cout << key << number(measured) << " |\n";
}

void write_page(test::MathRig& rig) {
  std::cout
      << "# Accuracy\n\nWritten by `tools/accuracy_page`; a test measures again and compares. "
         "All errors are those of the emulator\nagainst fp64. It computes the approximate "
         "instructions exactly but for rounding; the bounds hold the errors that\nthe PTX ISA "
         "allows a GPU.\n\n## Functions of the builder\n\nOver every 2^8-th f32 of the range: "
         "units in the last place, less the bound's absolute part.\n\n"
         "| function | form | arguments | bound | measured |\n|---|---|---|---|---|\n";
  write(functions(rig, kPageStride));
  std::cout << "\n## Kernels\n\nThe largest share of a kernel's bound over its cases "
               "([kernels.md](kernels.md) has the bounds), rounding to the\ntype included. 0: bit "
               "for bit the reference rounded once.\n\n"
               "| kernel | type | error / bound |\n|---|---|---|\n";
  write(kernels(rig, 1));
}

Lines lines_of(const char* path) {
  Lines lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("| `", 0) != 0) continue;
    const std::size_t cell = line.rfind("| ", line.size() - 3) + 2;
    lines[line.substr(0, cell)] = std::stod(line.substr(cell));
  }
  return lines;
}

bool in_full_run() {
  const char* const full = std::getenv("PTXGEN_TEST_FULL");
  return full != nullptr && std::string_view(full) == "1";
}

// Another libm may move the last digits of the reference.
bool check(test::MathRig& rig, const char* path) {
  const bool full = in_full_run();
  Lines now = functions(rig, full ? kPageStride : kEverydayStride);
  now.merge(kernels(rig, full ? 1 : kEverydayCases));
  const Lines file = lines_of(path);
  bool good = now.size() == file.size();
  for (const auto& [key, measured] : now) {
    const auto found = file.find(key);
    if (found != file.end() && measured <= found->second * 1.02 + 1e-3) continue;
    std::cerr << key << number(measured) << " | is not in " << path << ", or less there\n";
    good = false;
  }
  if (!good) std::cerr << path << " is not up to date; run: accuracy_page > " << path << "\n";
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  test::MathRig rig;
  if (argc == 1) {
    write_page(rig);
    return 0;
  }
  if (argc == 3 && std::string_view(argv[1]) == "--check") return check(rig, argv[2]) ? 0 : 1;
  const std::span names(argv + std::min(argc, 2), argv + argc);
  const bool known = std::all_of(names.begin(), names.end(), [](std::string_view name) {
    return std::ranges::find(kMathBounds, name, &MathBound::function) != std::end(kMathBounds);
  });
  if (argc >= 2 && std::string_view(argv[1]) == "--all" && known) {
    return check_all(rig, names) ? 0 : 1;
  }
  std::cerr << "usage: accuracy_page [--check FILE | --all [FUNCTION..]]\nfunctions:";
  for (const test::MathFunction& function : test::kMathFunctions) std::cerr << ' ' << function.name;
  std::cerr << '\n';
  return 2;
}
