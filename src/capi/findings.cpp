// src/capi/findings.cpp - findings and counters of launches on the emulated device
#include "ptxgen/runtime/device/findings.hpp"

#include <algorithm>

#include "capi/objects.hpp"
#include "runtime/device/finding_store.hpp"
#include "support/format.hpp"

using namespace ptxgen;
using namespace ptxgen::capi;

namespace {

void write(std::uint32_t (&to)[3], const Dim3& from) noexcept {
  to[0] = from.x;
  to[1] = from.y;
  to[2] = from.z;
}

/// Its texts are those of `from`.
ptxgen_finding to_c(const LaunchFinding& from) noexcept {
  static_assert(static_cast<int>(Severity::Error) == PTXGEN_FINDING_ERROR &&
                static_cast<int>(Severity::Warning) == PTXGEN_FINDING_WARNING &&
                static_cast<int>(Severity::Note) == PTXGEN_FINDING_NOTE);
  const Finding& finding = from.finding;
  const bool built = finding.cpp.known();
  ptxgen_finding out{};
  out.struct_bytes = sizeof out;
  out.launch = from.launch;
  out.count = from.count;
  out.severity = static_cast<std::int32_t>(finding.severity);
  out.fault = from.fault ? 1 : 0;
  out.rule = finding.rule.c_str();
  out.message = finding.message.c_str();
  out.kernel = from.kernel.c_str();
  out.statement = from.statement.c_str();
  out.file = built ? finding.cpp.file : finding.file.c_str();
  out.line = built ? finding.cpp.line : finding.line;
  out.text = from.text.c_str();
  write(out.grid, from.grid);
  write(out.block, from.block);
  write(out.block_index, from.block_index);
  write(out.thread_index, from.thread_index);
  out.source_file = finding.source_file.c_str();
  out.source_line = finding.source_line;
  out.other_line = finding.other_line;
  return out;
}

ptxgen_memory_counters to_c(const emulator::MemoryCounters& from) noexcept {
  return {from.requests, from.sectors, from.ideal_sectors, from.bytes};
}

ptxgen_shared_counters to_c(const emulator::SharedCounters& from) noexcept {
  return {from.requests, from.wavefronts, from.ideal_wavefronts, from.bank_conflicts, from.bytes};
}

ptxgen_counters to_c(const LaunchTotals& totals) noexcept {
  const emulator::Counters& from = totals.counters;
  ptxgen_counters out{};
  out.struct_bytes = sizeof out;
  out.launches = totals.launches;
  out.warp_instructions = from.warp_instructions;
  out.thread_instructions = from.thread_instructions;
  out.branches = from.branches;
  out.divergent_branches = from.divergent_branches;
  out.barriers = from.barriers;
  out.atomics = from.atomics;
  out.global_load = to_c(from.global_load);
  out.global_store = to_c(from.global_store);
  out.local_load = to_c(from.local_load);
  out.local_store = to_c(from.local_store);
  out.shared_load = to_c(from.shared_load);
  out.shared_store = to_c(from.shared_store);
  out.bulk_load_bytes = from.bulk_load.bytes;
  out.bulk_store_bytes = from.bulk_store.bytes;
  out.seconds = totals.seconds;
  return out;
}

/// Adapter from FindingSink to a C callback.
struct FindingReceiver {
  ptxgen_finding_callback callback;
  void* user;
};

}  // namespace

extern "C" {

ptxgen_status ptxgen_findings_create(const ptxgen_device* device,
                                     ptxgen_findings** findings) noexcept {
  return guarded(device, [&] {
    ptxgen_findings*& result = need_result(findings, "findings");
    result = new ptxgen_findings(need(device, "device").runtime->device.findings());
  });
}

void ptxgen_findings_free(ptxgen_findings* findings) noexcept { delete findings; }

size_t ptxgen_findings_count(const ptxgen_findings* findings) noexcept {
  return findings == nullptr || !findings->is(Kind::Findings) ? 0 : findings->list.size();
}

ptxgen_status ptxgen_findings_get(const ptxgen_findings* findings, size_t index,
                                  ptxgen_finding* finding) noexcept {
  return guarded(findings, [&] {
    const std::vector<LaunchFinding>& list = need(findings, "findings").list;
    if (index >= list.size()) {
      throw UsageError{"out-of-range",
                       format_text("index is {}; the list has {} findings", index, list.size())};
    }
    write_struct(finding, to_c(list[index]), "finding");
  });
}

ptxgen_status ptxgen_device_count_findings(const ptxgen_device* device, uint64_t* errors,
                                           uint64_t* warnings, uint64_t* notes) noexcept {
  return guarded(device, [&] {
    const FindingCounts counts = need(device, "device").runtime->device.finding_counts();
    if (errors != nullptr) *errors = counts.errors;
    if (warnings != nullptr) *warnings = counts.warnings;
    if (notes != nullptr) *notes = counts.notes;
  });
}

ptxgen_status ptxgen_device_clear_findings(ptxgen_device* device) noexcept {
  return guarded(device, [&] { need(device, "device").runtime->device.clear_findings(); });
}

ptxgen_status ptxgen_device_on_finding(ptxgen_device* device, ptxgen_finding_callback callback,
                                       void* user) noexcept {
  return guarded(device, [&] {
    const Device& of = need(device, "device").runtime->device;
    if (callback == nullptr) return of.on_finding({});
    FindingSink sink;
    sink.user = new FindingReceiver{callback, user};
    sink.found = [](void* receiver, const LaunchFinding& finding) {
      const auto& to = *static_cast<const FindingReceiver*>(receiver);
      const ptxgen_finding seen = to_c(finding);
      to.callback(to.user, &seen);
    };
    sink.release = [](void* receiver) noexcept { delete static_cast<FindingReceiver*>(receiver); };
    of.on_finding(sink);
  });
}

ptxgen_status ptxgen_device_get_counters(const ptxgen_device* device,
                                         ptxgen_counters* counters) noexcept {
  return guarded(device, [&] {
    const Device& of = need(device, "device").runtime->device;
    write_struct(counters, to_c(of.finding_store().totals()), "counters");
  });
}

ptxgen_status ptxgen_device_clear_counters(ptxgen_device* device) noexcept {
  return guarded(device,
                 [&] { need(device, "device").runtime->device.finding_store().clear_totals(); });
}

}  // extern "C"
