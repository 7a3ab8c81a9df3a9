// src/runtime/device/device.cpp - a GPU, real or emulated
#include "ptxgen/runtime/device/device.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "ptxgen/support/observe.hpp"
#include "runtime/device/device_state.hpp"
#include "runtime/device/driver_error.hpp"
#include "runtime/device/failed_launch_sink.hpp"
#include "support/format.hpp"
#include "support/numbers.hpp"

namespace ptxgen::inline v0 {

using driver::Table;

namespace {

/// First version with the cluster attribute.
constexpr int kDriverWithClusters = 11080;
/// First version with the attribute of blocks per multiprocessor.
constexpr int kDriverWithBlockCount = 11000;

DeviceLimits ask_limits(const Table& table, driver::CUdevice device, int driver_version) {
  using namespace driver;
  const auto ask = [&](CUdevice_attribute attribute) {
    int value = 0;
    must(table, Stage::Device, &Table::device_get_attribute, &value, attribute, device);
    return static_cast<std::uint32_t>(std::max(value, 0));
  };
  DeviceLimits l;
  l.multiprocessors = ask(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  l.threads_per_block = ask(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  l.threads_per_multiprocessor = ask(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  l.block[0] = ask(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
  l.block[1] = ask(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
  l.block[2] = ask(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  l.grid[0] = ask(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
  l.grid[1] = ask(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
  l.grid[2] = ask(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
  l.shared_per_block = ask(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  l.shared_per_block_opt_in = ask(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  l.shared_per_multiprocessor = ask(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  l.reserved_shared_per_block = ask(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  l.registers_per_block = ask(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  l.registers_per_multiprocessor = ask(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  l.l2_bytes = ask(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  l.clock_khz = ask(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  l.cooperative = ask(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH) != 0;
  if (driver_version >= kDriverWithClusters) {
    l.clusters = ask(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) != 0;
  }
  if (driver_version >= kDriverWithBlockCount) {
    l.blocks_per_multiprocessor = ask(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  }
  // Two transfers in each clock; kHz times bits in units of 1e9 bytes per second.
  const double khz = ask(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  const double bits = ask(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  l.bandwidth_gb_per_s = 2 * khz * bits / 8 * 1e-6;
  std::size_t bytes = 0;
  must(table, Stage::Device, &Table::device_total_mem, &bytes, device);
  l.memory_bytes = bytes;
  return l;
}

}  // namespace

DeviceInfo ask_device(const Table& table, driver::CUdevice device, int ordinal, DeviceKind kind) {
  DeviceInfo info;
  info.kind = kind;
  info.ordinal = ordinal;
  must(table, Stage::Device, &Table::driver_get_version, &info.driver_version);
  info.newest_ptx = driver::newest_ptx(info.driver_version);
  std::array<char, 256> name{};
  must(table, Stage::Device, &Table::device_get_name, name.data(), static_cast<int>(name.size()),
       device);
  name.back() = '\0';
  info.name = name.data();
  int major = 0;
  int minor = 0;
  must(table, Stage::Device, &Table::device_get_attribute, &major,
       driver::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  must(table, Stage::Device, &Table::device_get_attribute, &minor,
       driver::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  info.sm = static_cast<std::uint16_t>(major * 10 + minor);
  info.limits = ask_limits(table, device, info.driver_version);
  const ptx::Target* const target = target_for(info.sm, info.newest_ptx);
  if (target != nullptr) info.target = target->name;
  return info;
}

const ptx::Target* target_for(std::uint16_t sm, int newest_ptx) noexcept {
  const ptx::Target* best = nullptr;
  for (const ptx::Target& row : ptx::targets()) {
    const bool compiled =
        newest_ptx == 0 || row.version.major * 10 + row.version.minor <= newest_ptx;
    if (row.variant == ptx::Variant::None && row.sm <= sm && compiled) {
      if (best == nullptr || row.sm > best->sm) best = &row;
    }
  }
  return best;
}

Device Device::open(const Table& table, int ordinal, DeviceKind kind, const Settings& settings) {
  auto facts = std::make_shared<DeviceFacts>();
  facts->table = &table;
  facts->log = open_log(settings);
  facts->trace = open_trace(settings, facts->log);
  facts->dump_folder = settings.temp_dir;
  must(table, Stage::Device, &Table::init, 0u);
  int count = 0;
  must(table, Stage::Device, &Table::device_get_count, &count);
  if (ordinal < 0 || ordinal >= count) {
    throw Error(
        Stage::Device, "no-device",
        format_text("there is no device {}; the driver has {}", ordinal,
                    count == 0 ? std::string("none") : format_text("{}, numbered from 0", count)));
  }
  must(table, Stage::Device, &Table::device_get, &facts->device, ordinal);
  facts->info = ask_device(table, facts->device, ordinal, kind);
  if (kind == DeviceKind::Host) describe_host(facts->info, settings, facts->log);
  const DeviceInfo& info = facts->info;
  std::unique_ptr<FailedLaunchSink> failed;
  if (!settings.repro.empty()) failed = record_failed_launches(settings.repro, info, facts->log);
  facts->findings = std::make_shared<FindingStore>(
      facts->log, is_on("PTXGEN_STRICT", settings.strict), std::move(failed));
  const std::string which =
      format_text("{} (compute capability {})", info.name, dotted_version(info.sm));
  facts->target = ptx::find_target(info.target);
  if (facts->target == nullptr) {
    throw Error(
        Stage::Device, "unsupported-device",
        format_text("{} with a driver of CUDA {} is older than every target; the oldest is {}",
                    which, driver::version_text(info.driver_version), ptx::targets().front().name));
  }
  if (facts->target->sm != info.sm) {
    facts->log.warn([&] {
      return format_text(
          "{} is not in the target table, or its driver (CUDA {}) cannot compile for it; kernels "
          "are built for {}",
          which, driver::version_text(info.driver_version), info.target);
    });
  }
  facts->findings->open_trace(facts->trace);
  return Device(Hidden<State>::make(State{std::move(facts)}));
}

Device::Device(Hidden<State> state) : state_(std::move(state)) {}
Device::Device(const Device& other)
    : state_(other.state_ ? Hidden<State>::make(*other.state_) : Hidden<State>()) {}

const DeviceInfo& Device::info() const noexcept { return state_->facts->info; }
const Table& Device::table() const noexcept { return *state_->facts->table; }
const ptx::Target& Device::target() const noexcept { return *state_->facts->target; }
const Log& Device::log() const noexcept { return state_->facts->log; }
const Trace& Device::trace() const noexcept { return state_->facts->trace; }
const std::string& Device::dump_folder() const noexcept { return state_->facts->dump_folder; }

FindingStore& Device::finding_store() const noexcept { return *state_->facts->findings; }
std::vector<LaunchFinding> Device::findings() const {
  return finding_store().select([](const LaunchFinding&) { return true; });
}
std::vector<LaunchFinding> Device::findings(std::string_view kernel) const {
  return finding_store().select([&](const LaunchFinding& one) { return one.kernel == kernel; });
}
std::vector<LaunchFinding> Device::findings(std::uint64_t launch) const {
  return finding_store().select([&](const LaunchFinding& one) { return one.launch == launch; });
}
FindingCounts Device::finding_counts() const { return finding_store().counts(); }
void Device::clear_findings() const { finding_store().clear(); }
void Device::on_finding(FindingSink sink) const { finding_store().set_sink(sink); }
bool Device::strict() const noexcept { return finding_store().strict(); }

driver::CUdevice Device::driver_ordinal() const noexcept { return state_->facts->device; }

}  // namespace ptxgen::inline v0
