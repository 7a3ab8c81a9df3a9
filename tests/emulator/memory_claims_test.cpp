// tests/emulator/memory_claims_test.cpp - what the emulator keeps for memory that kernels touch
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

#if defined(__linux__)
#include <unistd.h>
#endif

#include "ptxgen/emulator/emulator.hpp"
#include "support/harness.hpp"

namespace ptxgen::test {
namespace {

/// Bytes of this process's pages backed by memory; 0 where that is not known.
std::uint64_t resident_bytes() {
#if defined(__linux__)
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  unsigned long long size = 0;
  unsigned long long resident = 0;
  const int read = std::fscanf(file, "%llu %llu", &size, &resident);
  std::fclose(file);
  return read == 2 ? resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) : 0;
#else
  return 0;
#endif
}

/// Every thread writes 16 bytes at `p + 16 * (ctaid * ntid + tid)`, reads them and writes again.
constexpr std::string_view kTouch =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry k(.param .u64 p, .param .u64 stride)\n{\n"
    ".reg .b64 %p, %s, %o; .reg .b32 %r<8>;\n"
    "ld.param.u64 %p, [p];\nld.param.u64 %s, [stride];\n"
    "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\n"
    "mad.lo.u32 %r1, %r1, %r2, %r3;\ncvt.u64.u32 %o, %r1;\nmad.lo.u64 %p, %o, %s, %p;\n"
    "st.global.v4.u32 [%p], {%r1, %r2, %r3, %r1};\n"
    "ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%p];\n"
    "st.global.u32 [%p+4], %r4;\nret;\n}\n";

void touch(emulator::Device& device, std::uint64_t buffer, std::uint64_t stride,
           std::uint32_t blocks, std::uint32_t threads, emulator::RuleSet checks) {
  emulator::Program program = emulator::Program::load(device, kTouch);
  const std::uint64_t parameters[] = {buffer, stride};
  emulator::Launch launch;
  launch.kernel = "k";
  launch.grid = {blocks, 1, 1};
  launch.block = {threads, 1, 1};
  launch.parameters = std::as_bytes(std::span(parameters));
  emulator::Options options;
  options.checks = checks;
  const emulator::Result result = emulator::run(program, launch, options);
  std::string findings;
  for (const emulator::RunFinding& finding : result.findings) {
    findings += emulator::to_text(finding) + "\n";
  }
  CHECK(findings.empty());
}

double overhead_per_byte(emulator::RuleSet checks) {
  constexpr std::uint64_t kBytes = 64u << 20;
  emulator::Device device(emulator::gpu_named("h200"));
  const std::uint64_t before = device.overhead_bytes();
  const std::uint64_t buffer = device.allocate(kBytes);
  touch(device, buffer, 16, static_cast<std::uint32_t>(kBytes / 16 / 256), 256, checks);
  return static_cast<double>(device.overhead_bytes() - before) / static_cast<double>(kBytes);
}

emulator::RuleSet without_global_races() {
  return emulator::RuleSet::defaults()
      .remove(emulator::Rule::GlobalRace)
      .remove(emulator::Rule::ScopeTooNarrow);
}

}  // namespace

TEST_CASE("checks without global races keep at most 0.6 bytes for each byte that is touched") {
  const double overhead = overhead_per_byte(without_global_races());
  CHECK(overhead <= 0.6);
  CHECK(overhead >= 1.0 / 8);  // the written-bits are there, so something was measured
}

TEST_CASE("default checks keep at most 4.5 bytes for each byte that is touched") {
  const double overhead = overhead_per_byte(emulator::RuleSet::defaults());
  CHECK(overhead <= 4.5);
  CHECK(overhead >= 0.5);
}

TEST_CASE("4 GiB that are hardly touched cost pages only") {
  if (resident_bytes() == 0) return skip("this system does not tell what is resident");
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return skip("a sanitizer's shadow is resident too");
#else
  constexpr std::uint64_t kBytes = std::uint64_t{4} << 30;
  for (const bool races : {false, true}) {
    const emulator::RuleSet checks = races ? emulator::RuleSet::defaults() : without_global_races();
    const std::uint64_t before = resident_bytes();
    emulator::Device device(emulator::gpu_named("h200"));
    const std::uint64_t buffer = device.allocate(kBytes);
    // 64 threads, 64 MiB apart.
    touch(device, buffer, std::uint64_t{64} << 20, 2, 32, checks);
    const std::uint64_t after = resident_bytes();
    INFO((races ? "with" : "without") << " global race check");
    // 64 places with a page each of data and written-bits are half a MiB, with pieces of race
    // shadow 16 MiB; the decoded program is small. 4 GiB of written-bits alone would be 512 MiB.
    CHECK(after - std::min(after, before) < (std::uint64_t{32} << 20));
    CHECK(device.overhead_bytes() < (std::uint64_t{races ? 32u : 1u} << 20));
  }
#endif
}

}  // namespace ptxgen::test
