// ptxgen/runtime/device/device.hpp - a GPU, real or emulated, and its context
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/driver/table.hpp"
#include "ptxgen/ptx/target.hpp"
#include "ptxgen/support/hidden.hpp"
#include "ptxgen/support/log.hpp"
#include "ptxgen/support/settings.hpp"

namespace ptxgen::inline v0 {

struct FindingCounts;  // ptxgen/runtime/device/findings.hpp
struct LaunchFinding;  // ptxgen/runtime/device/findings.hpp
class FindingStore;    // src/runtime/device/finding_store.hpp
class Trace;           // ptxgen/support/trace.hpp
class ContextCore;  // src/runtime/device/core.hpp: table, handle, log; shared by all that a context
                    // makes

enum class DeviceKind : std::uint8_t {
  Cuda,      ///< libcuda's; our stand-in library counts as one
  Emulator,  ///< the emulated driver inside this library
};

/// What launches are checked against. Bytes unless said otherwise; read from the device.
struct DeviceLimits {
  std::uint32_t multiprocessors = 0;
  std::uint32_t threads_per_block = 0;
  std::uint32_t threads_per_multiprocessor = 0;
  std::uint32_t block[3] = {0, 0, 0};         ///< largest x, y, z
  std::uint32_t grid[3] = {0, 0, 0};          ///< largest x, y, z
  std::uint32_t shared_per_block = 0;         ///< without opting in
  std::uint32_t shared_per_block_opt_in = 0;  ///< static and dynamic together, opted in
  std::uint32_t shared_per_multiprocessor = 0;
  std::uint32_t reserved_shared_per_block = 0;
  std::uint32_t registers_per_block = 0;  ///< 32-bit registers
  std::uint32_t registers_per_multiprocessor = 0;
  std::uint32_t blocks_per_multiprocessor = 0;
  std::uint32_t l2_bytes = 0;
  std::uint32_t clock_khz = 0;
  std::uint64_t memory_bytes = 0;
  double bandwidth_gb_per_s = 0;  ///< from memory clock and bus width; 0 if the driver tells none
  bool cooperative = false;
  bool clusters = false;
};

/// One device of one driver.
struct DeviceInfo {
  DeviceKind kind = DeviceKind::Cuda;
  int ordinal = 0;
  std::string name;        ///< "NVIDIA H200"
  std::uint16_t sm = 0;    ///< 90: compute capability 9.0
  std::string target;      ///< what kernels are generated for: the newest base target of the target
                           ///< table that the device runs ("sm_90"); never one above the device
  int driver_version = 0;  ///< 13000 is 13.0
  int newest_ptx = 0;      ///< that its driver compiles, 10 * major + minor; 0 if not known
  DeviceLimits limits;
};

/// The device as the planner models it. The row of the GPU table that is such a part (architecture,
/// multiprocessors, bandwidth within 5 %), else one made of the device's own figures with latency
/// and read share of the first row of that architecture. What a device says of its multiprocessors,
/// L2 and target counts in both cases. Names are those of a row, or of the target.
[[nodiscard]] ptx::Gpu gpu_of(const DeviceInfo& info) noexcept;

/// A receiver of findings. `found` is called by a thread of the emulated device as soon as a launch
/// has ended, before anything that waits for it returns, and never while the library holds a lock:
/// it may read and clear findings, but what it calls of the driver (launches, copies, waits) is
/// refused. What it throws is swallowed.
struct FindingSink {
  void (*found)(void* user, const LaunchFinding& finding) = nullptr;
  void* user = nullptr;
  /// Called once, after the last `found`. May be null.
  void (*release)(void* user) noexcept = nullptr;
};

/// A device that was opened: its driver's table and what it can do. A cheap value.
///
/// Threads: const members from any thread.
class Device {
 public:
  /// "auto": the first device of libcuda, else the emulator, and the log says so, once a process,
  /// at level warn; PTXGEN_DEVICE=emulator, or the name "emulator", chooses it in silence.
  /// "cuda:N": libcuda's device N. "emulator": the GPU of `settings.emulated_gpu`; "emulator:NAME":
  /// that one of the GPU table. An empty name takes `settings.device`. Throws `Error`
  /// (Stage::Device): "bad-device" (no such name; lists what is possible), "no-driver" (the log
  /// lists the places tried), "no-device" (what the driver shows instead), "unsupported-device"
  /// (older than all targets), "bad-setting", "driver-call" for a driver that fails. Messages go to
  /// the default log, at the settings' level, and spans where the settings say. `settings.strict` =
  /// "1": findings of severity error are thrown by the next call that waits.
  [[nodiscard]] static Device open(std::string_view name = {},
                                   const Settings& settings = Settings::from_environment());
  /// A device behind any table, which must outlive it: for tests and for tracing wrappers.
  /// Calls cuInit.
  [[nodiscard]] static Device open(const driver::Table& table, int ordinal,
                                   DeviceKind kind = DeviceKind::Cuda,
                                   const Settings& settings = Settings::from_environment());
  /// All devices that `open` could open, libcuda's first; never throws for what is missing.
  [[nodiscard]] static std::vector<DeviceInfo> list(const Settings& settings);

  Device(const Device& other);
  Device(Device&&) noexcept = default;
  Device& operator=(Device&&) noexcept = default;
  ~Device() = default;

  [[nodiscard]] const DeviceInfo& info() const noexcept;
  [[nodiscard]] const driver::Table& table() const noexcept;
  /// What kernels for this device are built for: `info().target`'s row.
  [[nodiscard]] const ptx::Target& target() const noexcept;
  /// Where everything made from the device tells what it has to tell, and its spans.
  [[nodiscard]] const Log& log() const noexcept;
  [[nodiscard]] const Trace& trace() const noexcept;
  /// The folder in which PTX that a driver refused is left for inspection.
  [[nodiscard]] const std::string& dump_folder() const noexcept;
  /// What launches on the emulated device were found to do wrong; empty for a GPU. Errors are
  /// logged at once at level error, warnings at warn, notes at info, each with kernel, C++ line and
  /// PTX statement. A cause that was logged before is logged again after 10, 100, ... launches
  /// only. The first 1,000 findings are kept until they are cleared. Copies of a device share them.
  /// Include ptxgen/runtime/device/findings.hpp.
  [[nodiscard]] std::vector<LaunchFinding> findings() const;
  /// Those of the kernels of that name.
  [[nodiscard]] std::vector<LaunchFinding> findings(std::string_view kernel) const;
  /// Those of one launch (`LaunchRecord::launch`).
  [[nodiscard]] std::vector<LaunchFinding> findings(std::uint64_t launch) const;
  [[nodiscard]] FindingCounts finding_counts() const;
  /// Forgets them: the next of every cause is logged in full.
  void clear_findings() const;
  /// Every finding from now on is also handed to `sink`, which replaces the one before; one without
  /// `found` ends it. A call to the old one that has begun in another thread may still run.
  void on_finding(FindingSink sink) const;
  /// Whether findings of severity error are thrown (PTXGEN_STRICT): once each, by the next
  /// `synchronize` of a stream, an event or a context, or read of a buffer that waits, as `Error`
  /// (Stage::Launch) with the rule as its code. The context stays usable.
  [[nodiscard]] bool strict() const noexcept;

  [[nodiscard]] FindingStore& finding_store() const noexcept;
  /// The driver's own CUdevice.
  [[nodiscard]] driver::CUdevice driver_ordinal() const noexcept;

 private:
  struct State;
  explicit Device(Hidden<State> state);
  Hidden<State> state_;
};

/// The device's primary context, retained for as long as the Context or anything made from it
/// lives: streams, events, buffers and modules keep it. Other libraries of the process (cuBLAS,
/// frameworks on the CUDA runtime) use the same one.
///
/// Every member, and every member of what a context makes, makes the context current for its own
/// duration where it is not, and leaves the thread as it found it.
///
/// A fault in a kernel poisons the context (`poisoned`): the call that meets it throws with the
/// code "device-fault", every later one with "context-lost". What a destructor cannot let go of is
/// tried once more and logged. Then let go of everything that was made from it, call `reset`, and
/// start afresh.
///
/// Threads: const members from any thread at once.
class Context {
 public:
  /// Throws `Error` (Stage::Device, "driver-call").
  explicit Context(const Device& device);
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;
  ~Context();

  [[nodiscard]] const Device& device() const noexcept;
  /// Waits for all work of the context. Throws `Error` (Stage::Launch, code "device-fault" with the
  /// driver's status and, where the driver keeps one, its log: the sanitizer's finding).
  void synchronize() const;
  /// Bytes of device memory.
  struct Memory {
    std::uint64_t free = 0;
    std::uint64_t total = 0;
  };
  [[nodiscard]] Memory memory() const;
  /// Whether a fault has made the context unusable.
  [[nodiscard]] bool poisoned() const noexcept;
  /// Destroys the primary context for the whole process, whoever uses it, so that the next Context
  /// of the device starts with a healthy one.
  static void reset(const Device& device);

  /// The CUcontext.
  [[nodiscard]] driver::CUcontext handle() const noexcept;
  [[nodiscard]] const ContextCore& core() const noexcept { return *core_; }

 private:
  struct Shared;
  Hidden<Shared> shared_;
  const ContextCore* core_ = nullptr;
};

}  // namespace ptxgen::inline v0
