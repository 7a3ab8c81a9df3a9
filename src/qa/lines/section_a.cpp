// src/qa/lines/section_a.cpp - A: the environment
#include "qa/lines/lines.hpp"

#include "ptxgen/kernels.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "qa/edits.hpp"
#include "qa/fixture.hpp"
#include "qa/tally.hpp"

namespace ptxgen::qa {

namespace section_a {
namespace {

constexpr std::uint64_t kLargest = 8192;  // k and n of the largest shape of section E
constexpr std::uint64_t kMatrixBytes = kLargest * kLargest * sizeof(float);

Outcome driver_version(Fixture& fixture, const Line&) {
  if (!fixture.facts.gpu) return skipped(Need::Gpu, "no driver of a GPU to ask");
  Tally tally;
  const int version = fixture.facts.device.driver_version;
  tally.figure("driver API {}.{}", version / 1000, version % 1000 / 10);
  tally.check(version >= 12020, "the driver's API is {}, below 12020", version);
  return tally.outcome();
}

Outcome device_recorded(Fixture& fixture, const Line&) {
  if (!fixture.facts.gpu) return skipped(Need::Gpu, "no GPU was found");
  const DeviceInfo& device = fixture.facts.device;
  Tally tally;
  tally.figure("{}: sm_{}, {} SMs, {} MB of L2, {} MHz", device.name, device.sm,
               device.limits.multiprocessors, device.limits.l2_bytes / 1000000,
               device.limits.clock_khz / 1000);
  tally.check(device.sm >= 70, "{} is sm_{}, older than sm_70", device.name, device.sm);
  tally.check(device.limits.multiprocessors != 0, "the driver reports no multiprocessors");
  return tally.outcome();
}

Outcome no_toolkit_needed(Fixture& fixture, const Line&) {
  Tally tally;
  const ptx::Module module = fixture.build(GemvCoalesced{});
  const std::vector<Finding> findings = ptx::verify(module);
  tally.check(count_errors(findings) == 0, "without a toolkit the kernel is refused: {}",
              first_error(findings));
  const Assembler assembler(fixture.settings());
  const AssemblerFinding tool = assembler.first_tool();
  if (!tool.found || tool.tool == AssemblerTool::Driver) {
    tally.figure("no assembler of a toolkit here");
    return tally.outcome();
  }
  tally.figure("{} {}", to_string(tool.tool), tool.version);
  AssembleOptions options;
  options.target = module.target;
  const Assembly assembly = assembler.assemble(ptx::print(module), options);
  tally.check(assembly.registers != 0 && assembly.registers <= 64,
              "gemv_coalesced has {} registers, expected 1 to 64", assembly.registers);
  tally.figure("gemv_coalesced: {} registers, {} bytes spilled", assembly.registers,
               assembly.spill_stores);
  return tally.outcome();
}

Outcome compiler(Fixture& fixture, const Line&) {
  const Facts& facts = fixture.facts;
  Tally tally;
  tally.figure("{} {}, C++ {}, CMake {}.{}", facts.compiler, facts.compiler_version, facts.language,
               facts.cmake_major, facts.cmake_minor);
  const int min = facts.compiler == "GCC" ? 11 : facts.compiler == "Clang" ? 14 : 0;
  if (tally.check(min != 0, "built by an unknown compiler")) {
    tally.check(facts.compiler_version >= min, "{} {} is older than {}", facts.compiler,
                facts.compiler_version, min);
  }
  tally.check(facts.language >= 202002, "the language is C++ {}, not C++20", facts.language);
  tally.check(facts.cmake_major * 100 + facts.cmake_minor >= 320, "CMake {}.{} is older than 3.20",
              facts.cmake_major, facts.cmake_minor);
  return tally.outcome();
}

Outcome disk(Fixture& fixture, const Line&) {
  const std::uint64_t l2 = fixture.facts.device.limits.l2_bytes;
  const std::uint64_t needed = kMatrixBytes + 4 * l2;
  Tally tally;
  tally.figure("{} MB free, {} MB needed: a matrix of {} x {}, and 4 x {} MB of L2",
               fixture.facts.disk_free / 1000000, needed / 1000000, kLargest, kLargest,
               l2 / 1000000);
  tally.check(l2 != 0, "the size of the L2 is unknown");
  tally.check(fixture.facts.disk_free >= needed, "{} bytes are free, {} are needed",
              fixture.facts.disk_free, needed);
  return tally.outcome();
}

Outcome other_processes(Fixture& fixture, const Line&) {
  if (!fixture.facts.gpu) return skipped(Need::Gpu, "no GPU whose processes could be listed");
  if (!fixture.facts.processes_known) {
    return skipped(Need::Tool, "nvidia-smi did not list the processes of the GPU");
  }
  Tally tally;
  tally.check(fixture.facts.gpu_processes == 0,
              "{} other processes use the GPU: timings are "
              "contended",
              fixture.facts.gpu_processes);
  return tally.outcome();
}

Outcome governor(Fixture& fixture, const Line&) {
  const std::string& found = fixture.facts.governor;
  if (found.empty()) return not_applicable("this machine exposes no frequency governor");
  Tally tally;
  bool known = false;
  for (const char* name :
       {"performance", "powersave", "ondemand", "conservative", "schedutil", "userspace"}) {
    known = known || found == name;
  }
  tally.figure("{}", found);
  tally.check(known, "'{}' is no governor of Linux: it cannot be recorded", found);
  return tally.outcome();
}

Outcome memory(Fixture& fixture, const Line&) {
  // On the host, and again as memory of an emulated device; the reference has two doubles a column.
  const std::uint64_t needed = 2 * kMatrixBytes + 2 * sizeof(double) * kLargest;
  Tally tally;
  tally.figure("{} MB of memory, {} MB needed for the fp64 reference of {} x {}",
               fixture.facts.memory / 1000000, needed / 1000000, kLargest, kLargest);
  tally.check(fixture.facts.memory >= needed, "{} bytes of memory, {} are needed",
              fixture.facts.memory, needed);
  return tally.outcome();
}

constexpr Line kLines[] = {
    {"A1",
     Section::A,
     1,
     "the driver is 12.2 or newer",
     "version of the driver's API",
     Means::Gpu,
     driver_version,
     {"a driver of 12.1", nullptr, [](Fixture& f) { f.facts.device.driver_version = 12010; }},
     "ptxgen doctor"},
    {"A2",
     Section::A,
     1,
     "a GPU of sm_70 or newer is found and recorded",
     "name, SMs, L2 and clock of the device",
     Means::Gpu,
     device_recorded,
     {"a GPU of sm_61", nullptr, [](Fixture& f) { f.facts.device.sm = 61; }},
     "ptxgen doctor"},
    {"A3",
     Section::A,
     1,
     "no CUDA toolkit is needed; an assembler that is there is used",
     "gemv_coalesced is verified without one, and assembled with 1 to 64 registers by the first "
     "that is found",
     Means::Unit,
     no_toolkit_needed,
     {"an addition of f32 gets an address as operand",
      [](ptx::Module& m) {
        if (const ptx::Operand* address = operand_at(m, ptx::Op::mad_wide, 0, 0)) {
          set_operand(m, ptx::Op::fma_f32, 0, 1, *address);
        }
      },
      nullptr},
     "ptxgen dump gemv_coalesced | ptxgen assemble - --target sm_89"},
    {"A4",
     Section::A,
     1,
     "the compiler is GCC 11, Clang 14 or newer, in C++20, with CMake 3.20",
     "versions that built this program",
     Means::Unit,
     compiler,
     {"a build by GCC 10", nullptr,
      [](Fixture& f) {
        f.facts.compiler = "GCC";
        f.facts.compiler_version = 10;
      }},
     {}},
    {"A5", Section::A, 1, "the library configures from a clean checkout, with no sibling",
     "tests of the package: a copy of the sources is configured and installed alone", Means::Record,
     by_record, kFailedResult, "ctest -R package", "case package/"},
    {"A6", Section::A, 1, "the release build succeeds", "the step of scripts/test --full",
     Means::Record, by_record, kFailedResult, "cmake --preset release && ninja -C build/release",
     "case release: "},
    {"A7",
     Section::A,
     1,
     "the disk has space for the largest shape and 4 x L2 of rotation",
     "free bytes where temporary files are written, against the sum",
     Means::Unit,
     disk,
     {"100 MB are free", nullptr, [](Fixture& f) { f.facts.disk_free = 100000000; }},
     {}},
    {"A8",
     Section::A,
     1,
     "no other process uses the GPU",
     "nvidia-smi's list",
     Means::Gpu,
     other_processes,
     {"one other process", nullptr,
      [](Fixture& f) {
        f.facts.processes_known = true;
        f.facts.gpu_processes = 1;
      }},
     "nvidia-smi --query-compute-apps=pid --format=csv"},
    {"A9",
     Section::A,
     1,
     "the frequency governor is recorded",
     "of the first processor",
     Means::Unit,
     governor,
     {"a governor that Linux does not have", nullptr,
      [](Fixture& f) { f.facts.governor = "turbo"; }},
     {}},
    {"A10",
     Section::A,
     1,
     "the memory holds the fp64 reference of the largest test",
     "bytes of the machine, against the sum",
     Means::Unit,
     memory,
     {"512 MB of memory", nullptr, [](Fixture& f) { f.facts.memory = 512000000; }},
     {}},
};

}  // namespace
}  // namespace section_a

std::span<const Line> environment_lines() { return section_a::kLines; }

}  // namespace ptxgen::qa
