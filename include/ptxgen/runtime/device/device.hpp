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
  Cuda,      ///< libcuda's; the stand-in library counts as one
  Emulator,  ///< the emulated driver inside this library
  Host,      ///< the same, with described kernels run by functions of the host
};
/// Whether the device is one of the emulated driver.
[[nodiscard]] constexpr bool is_emulated(DeviceKind kind) noexcept {
  return kind != DeviceKind::Cuda;
}

/// Limits that launches are checked against, read from the device. Bytes unless stated otherwise.
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
  double bandwidth_gb_per_s = 0;  ///< from memory clock and bus width; 0 if the driver reports none
  bool cooperative = false;
  bool clusters = false;
};

/// One device of one driver.
struct DeviceInfo {
  DeviceKind kind = DeviceKind::Cuda;
  int ordinal = 0;
  std::string name;        ///< "NVIDIA H200"
  std::uint16_t sm = 0;    ///< 90: compute capability 9.0
  std::string target;      ///< of generated kernels: the newest base target that the device runs
  int driver_version = 0;  ///< 13000 is 13.0
  int newest_ptx =
      0;  ///< newest PTX version that the driver compiles, 10 * major + minor; 0: unknown
  DeviceLimits limits;
  /// Of kind Host: what runs described kernels, the name of a `HostTarget` ("avx2") or "scalar":
  /// their fp64 references.
  std::string host;
};

/// The device as the planner models it: the row of the GPU table that matches it (architecture,
/// multiprocessors, bandwidth within 5 %), else a row made of the device's own figures with latency
/// and read share of the first row of that architecture. Multiprocessors, L2 and target are always
/// the device's own. The name is that of a row, or of the target.
[[nodiscard]] ptx::Gpu gpu_of(const DeviceInfo& info) noexcept;

/// A receiver of findings. A thread of the emulated device calls `found` when a launch has ended,
/// before any call that waits for the launch returns, and with no lock of the library held. `found`
/// may read and clear findings; driver calls in it (launches, copies, waits) are refused, and
/// exceptions are swallowed.
struct FindingSink {
  void (*found)(void* user, const LaunchFinding& finding) = nullptr;
  void* user = nullptr;
  /// Called once, after the last `found`. May be null.
  void (*release)(void* user) noexcept = nullptr;
};

/// An open device: its driver's table and its properties. Cheap to copy.
///
/// Threads: const members from any thread.
class Device {
 public:
  /// "auto": the first device of libcuda, else the emulator, with one warning per process in the
  /// log; PTXGEN_DEVICE=emulator, or the name "emulator", selects it without the warning. "cuda:N":
  /// libcuda's device N. "emulator": the GPU of `settings.emulated_gpu`; "emulator:NAME": a GPU of
  /// the GPU table. "host": the emulator's GPU, on which described kernels run as functions of the
  /// host (`settings.host`, PTXGEN_HOST), and PTX on the emulator; "auto:host": the first device of
  /// libcuda, else the host. An empty name means `settings.device`. Throws `Error` (Stage::Device):
  /// "bad-device" (no such name; lists the valid ones), "no-vectors" (the host has not those of
  /// PTXGEN_HOST), "no-driver" (the log lists the places
  /// tried), "no-device" (lists the driver's devices), "unsupported-device" (older than all
  /// targets), "bad-setting", "driver-call". Messages go to the default log at the settings' level,
  /// spans to the settings' trace. `settings.strict` = "1": the next call that waits throws
  /// findings of severity error.
  [[nodiscard]] static Device open(std::string_view name = {},
                                   const Settings& settings = Settings::from_environment());
  /// A device of a given table, which must outlive it: for tests and tracing wrappers. Calls
  /// cuInit. Kind Host needs the emulated driver's table.
  [[nodiscard]] static Device open(const driver::Table& table, int ordinal,
                                   DeviceKind kind = DeviceKind::Cuda,
                                   const Settings& settings = Settings::from_environment());
  /// All devices that `open` could open, libcuda's first. Does not throw if there are none.
  [[nodiscard]] static std::vector<DeviceInfo> list(const Settings& settings);

  Device(const Device& other);
  Device(Device&&) noexcept = default;
  Device& operator=(Device&&) noexcept = default;
  ~Device() = default;

  [[nodiscard]] const DeviceInfo& info() const noexcept;
  [[nodiscard]] const driver::Table& table() const noexcept;
  /// Target of kernels for this device: the row of `info().target`.
  [[nodiscard]] const ptx::Target& target() const noexcept;
  /// Log and trace of everything made from the device.
  [[nodiscard]] const Log& log() const noexcept;
  [[nodiscard]] const Trace& trace() const noexcept;
  /// The folder where PTX that the driver rejected is written for inspection.
  [[nodiscard]] const std::string& dump_folder() const noexcept;
  /// Findings of launches on the emulated device; empty for a GPU. Each is logged at once with
  /// kernel, C++ line and PTX statement: errors at level error, warnings at warn, notes at info. A
  /// cause that was logged before is logged again only after 10, 100, ... launches. The first 1,000
  /// findings are kept until they are cleared. Copies of a device share them. Include
  /// ptxgen/runtime/device/findings.hpp.
  [[nodiscard]] std::vector<LaunchFinding> findings() const;
  /// Findings of the kernels of that name.
  [[nodiscard]] std::vector<LaunchFinding> findings(std::string_view kernel) const;
  /// Findings of one launch (`LaunchRecord::launch`).
  [[nodiscard]] std::vector<LaunchFinding> findings(std::uint64_t launch) const;
  [[nodiscard]] FindingCounts finding_counts() const;
  /// Clears the findings; the next finding of every cause is logged in full.
  void clear_findings() const;
  /// Passes later findings to `sink` too, which replaces the previous sink; a sink without `found`
  /// removes it. A call of the previous sink in another thread may still be running.
  void on_finding(FindingSink sink) const;
  /// Whether findings of severity error are thrown (PTXGEN_STRICT): each once, by the next
  /// `synchronize` of a stream, an event or a context or synchronous buffer read, as `Error`
  /// (Stage::Launch) with the rule as its code. The context stays usable.
  [[nodiscard]] bool strict() const noexcept;

  [[nodiscard]] FindingStore& finding_store() const noexcept;
  /// The driver's CUdevice.
  [[nodiscard]] driver::CUdevice driver_ordinal() const noexcept;

 private:
  struct State;
  explicit Device(Hidden<State> state);
  Hidden<State> state_;
};

/// The device's primary context, retained while the Context or anything made from it (stream,
/// event, buffer, module) lives. Other libraries of the process (cuBLAS, frameworks on the CUDA
/// runtime) use the same context.
///
/// Every member of a Context, and of objects made from it, makes the context current for the call
/// and then restores the thread's context.
///
/// A fault in a kernel poisons the context (`poisoned`): the call that observes it throws
/// "device-fault", every later one "context-lost". A destructor that fails to release its object
/// tries once more and logs the failure. To recover, destroy everything made from the context, call
/// `reset`, and make a new Context.
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
  /// Waits for all work of the context. Throws `Error` (Stage::Launch, "device-fault") with the
  /// driver's status and, if the driver keeps one, its log, which has the sanitizer's finding.
  void synchronize() const;
  /// Bytes of device memory.
  struct Memory {
    std::uint64_t free = 0;
    std::uint64_t total = 0;
  };
  [[nodiscard]] Memory memory() const;
  /// Whether a fault has made the context unusable.
  [[nodiscard]] bool poisoned() const noexcept;
  /// Destroys the primary context for the whole process, whether in use or not; the next Context of
  /// the device gets a new one.
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
