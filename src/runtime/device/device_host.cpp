// src/runtime/device/device_host.cpp - what runs described kernels on a device of kind Host
#include <algorithm>

#include "ptxgen/kernels/host.hpp"
#include "ptxgen/support/error.hpp"
#include "runtime/device/device_state.hpp"
#include "support/format.hpp"
#include "support/join.hpp"

namespace ptxgen::inline v0 {

namespace {

std::string offered_names() {
  std::vector<std::string> names = {"auto", "simd"};
  for (const HostTarget& target : host_targets()) {
    if (target.supported) names.emplace_back(target.name);
  }
  names.emplace_back(kHostScalar);
  return join_text(names, ", ");
}

}  // namespace

std::string host_backend(const Settings& settings) {
  const std::string& wanted = settings.host;
  if (wanted == kHostScalar) return wanted;
  const bool widest = wanted == "auto" || wanted == "simd";
  bool known = widest;
  for (const HostTarget& target : host_targets()) {
    known = known || target.name == wanted;
    if (target.supported && (widest || target.name == wanted)) return std::string(target.name);
  }
  if (wanted == "auto") return std::string(kHostScalar);
  throw Error(Stage::Device, known ? "no-vectors" : "bad-setting",
              format_text("PTXGEN_HOST is '{}', {}; here it may be {}", wanted,
                          !known                   ? "which names no vectors of this build"
                          : host_targets().empty() ? "but this build has no Highway"
                                                   : "which this processor does not have",
                          offered_names()));
}

void describe_host(DeviceInfo& info, const Settings& settings, const Log& log) {
  info.host = host_backend(settings);
  info.name = format_text("host ({})", info.host);
  log.info([&] {
    return format_text("device host: {}; PTX runs on the emulator",
                       info.host == kHostScalar
                           ? "described kernels run as their fp64 references"
                           : format_text("described kernels run with {} vectors, others as their "
                                         "fp64 references",
                                         info.host));
  });
}

const HostTarget* host_target_of(const DeviceInfo& info) noexcept {
  for (const HostTarget& target : host_targets()) {
    if (target.supported && target.name == info.host) return &target;
  }
  return nullptr;
}

}  // namespace ptxgen::inline v0
