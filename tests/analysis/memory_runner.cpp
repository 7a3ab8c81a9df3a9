// tests/analysis/memory_runner.cpp - memory reports beside what the emulator counts
#include "memory_runner.hpp"

#include <cstring>
#include <sstream>

#include "analysis/facts.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/ptx/parser.hpp"

namespace ptxgen::test {

using namespace analysis;

namespace {

constexpr const char* kHead = R"(.version 8.7
.target sm_90
.address_size 64
.global .align 16 .u32 counters[64];
.const .align 16 .u32 table[64] = {1, 2, 3, 4};
)";

// What is said of one request holds for all of them, where every lane took part.
void check_request(const MemoryAccess& access, const emulator::LineCounters& line,
                   std::ostringstream& differences) {
  const auto outside = [&](const char* what, std::uint64_t counted, const Spread& one,
                           std::uint64_t requests) {
    if (counted < one.min * requests || counted > one.max * requests)
      differences << "line " << access.line << ": " << counted << ' ' << what << " in " << requests
                  << " requests, expected " << one.min << " to " << one.max << " each\n";
  };
  const auto full = [&](std::uint64_t bytes, std::uint64_t requests) {
    return bytes == requests * access.lanes * access.bytes && requests > 0;
  };
  if (access.copy == CopyKind::Bulk) {
    if (full(line.bulk.bytes, line.bulk.copies))
      outside("sectors", line.bulk.sectors, access.any_warp, line.bulk.copies);
  } else if (access.space == ptx::Space::Shared) {
    if (full(line.shared.bytes, line.shared.requests))
      outside("wavefronts", line.shared.wavefronts, access.any_warp, line.shared.requests);
  } else if (access.space != ptx::Space::Const) {
    if (full(line.memory.bytes, line.memory.requests))
      outside("sectors", line.memory.sectors, access.any_warp, line.memory.requests);
  }
}

}  // namespace

std::string kernel(std::string_view body, std::string_view directive) {
  return std::string(kHead) + ".visible .entry k(.param .u64 a, .param .u32 n, .param .u32 s)\n" +
         std::string(directive) + R"(
{
  .reg .pred %p<20>;
  .reg .b16 %h<20>;
  .reg .b32 %r<40>;
  .reg .b64 %rd<20>;
  .reg .f32 %f<20>;
  .shared .align 16 .b8 tile[16384];
  .local .align 16 .b8 own[256];
  ld.param.u64 %rd0, [a];
  ld.param.u32 %r20, [n];
  ld.param.u32 %r21, [s];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %tid.y;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %laneid;
  mov.u32 %r5, tile;
  mov.u32 %r6, own;
)" + std::string(body) +
         "  ret;\n}\n";
}

std::string verdict_of(std::string_view body, std::string_view directive,
                       const MemoryReportOptions& options) {
  const ptx::Module module = ptx::parse(kernel(body, directive));
  std::string text;
  for (const MemoryAccess& access : memory_report(module, module.functions[0], options).accesses)
    text += verdict(access) + '\n';
  if (!text.empty()) text.pop_back();
  return text;
}

MemoryComparison compare(const MemoryRun& run) {
  emulator::Device device(emulator::gpu_named("sm_90"));
  emulator::Program program = emulator::Program::load(device, run.ptx);
  const emulator::Program::Kernel& kernel = program.kernels()[0];
  std::vector<std::byte> parameters(kernel.parameter_bytes);
  for (const auto& parameter : kernel.parameters) {
    std::uint64_t value = 0;
    if (parameter.bytes == 8) {
      value = device.allocate(run.buffer_bytes, parameter.name);
      device.fill(value, std::byte{0}, run.buffer_bytes);
    } else if (const auto known = run.values.find(parameter.name); known != run.values.end()) {
      value = known->second;
    }
    std::memcpy(parameters.data() + parameter.offset, &value, parameter.bytes);
  }
  const auto dim = [](const std::array<std::uint32_t, 3>& d) {
    return emulator::Dim3{d[0], d[1], d[2]};
  };
  emulator::Options options;
  options.threads = 1;
  const emulator::Result result = emulator::run(program,
                                                {.kernel = kernel.name,
                                                 .grid = dim(run.grid),
                                                 .block = dim(run.block),
                                                 .cluster = {1, 1, 1},
                                                 .dynamic_shared_bytes = run.dynamic_shared_bytes,
                                                 .parameters = parameters},
                                                options);

  MemoryComparison built;
  std::ostringstream differences;
  for (const auto& finding : result.findings) {
    // Reading what nothing wrote, and races, are no matter here.
    if (finding.finding.message.find("out of") != std::string::npos ||
        result.status == emulator::Status::Fault)
      differences << emulator::to_text(finding) << '\n';
  }
  const ptx::Module module = ptx::parse(run.ptx);
  const ptx::Function& function = *module.find_function(kernel.name);
  Facts facts(module, function, {.block = run.block});
  built.report = memory_report(facts.affine());
  const LaunchCounts counts =
      count_accesses(facts.affine(), built.report, {run.grid, run.block, parameters}, 100'000'000);
  for (std::size_t i = 0; i < counts.accesses.size(); ++i) {
    const AccessCounts& own = counts.accesses[i];
    const MemoryAccess& access = built.report.accesses[i];
    const std::string place = "line " + std::to_string(access.line) + ", " + access.opcode;
    emulator::LineCounters none;
    const emulator::LineCounters* line = &none;
    for (const auto& other : result.counters.lines)
      if (other.line == access.line) line = &other;
    if (access.affine() && !access.apart_unknown) check_request(access, *line, differences);
    if (!own.exact) {
      built.inexact.push_back(place + ": " + own.reason);
      built.affine_inexact += access.affine() ? 1 : 0;
      continue;
    }
    ++built.exact;
    built.requests += own.requests;
    const auto differ = [&](const char* what, std::uint64_t a, std::uint64_t b) {
      if (a != b)
        differences << place << ": " << a << ' ' << what << ", the emulator counts " << b << '\n';
    };
    if (access.copy == CopyKind::Bulk) {
      differ("copies", own.requests, line->bulk.copies);
      differ("sectors", own.sectors, line->bulk.sectors);
      differ("bytes", own.bytes, line->bulk.bytes);
      // Called coalesced whatever the size.
      if (access.affine() && !access.size_text.empty())
        differ("sectors needed", own.ideal_sectors, line->bulk.sectors);
    } else if (access.space == ptx::Space::Shared) {
      differ("requests", own.requests, line->shared.requests);
      differ("wavefronts", own.wavefronts, line->shared.wavefronts);
      differ("ideal wavefronts", own.ideal_wavefronts, line->shared.ideal_wavefronts);
      differ("bytes", own.bytes, line->shared.bytes);
    } else if (access.space != ptx::Space::Const) {
      differ("requests", own.requests, line->memory.requests);
      differ("sectors", own.sectors, line->memory.sectors);
      differ("ideal sectors", own.ideal_sectors, line->memory.ideal_sectors);
      differ("bytes", own.bytes, line->memory.bytes);
    }
  }
  built.differences = differences.str();
  return built;
}

}  // namespace ptxgen::test
