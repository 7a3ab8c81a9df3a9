// ptxgen/emulator/emulator.hpp - device memory, loaded programs and launches on the CPU
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/emulator/report/counters.hpp"
#include "ptxgen/emulator/report/rules.hpp"
#include "ptxgen/ptx/ir.hpp"
#include "ptxgen/ptx/target.hpp"
#include "ptxgen/support/hidden.hpp"

namespace ptxgen::inline v0::emulator {

class AddressSpace;  // src/emulator: the bytes, which of them exist, which were written
class Image;         // src/emulator: a decoded module

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
  [[nodiscard]] constexpr std::uint64_t count() const noexcept { return std::uint64_t{x} * y * z; }
  friend constexpr bool operator==(const Dim3&, const Dim3&) = default;
};

/// A generic part of an architecture, for PTX whose GPU is not known: `sm_89` and the like, with
/// round figures. Throws `Error` (Stage::Emulate, code "unknown-gpu") listing what there is.
[[nodiscard]] ptx::Gpu gpu_named(std::string_view name);
/// The GPU that the emulator models for a `.target` when none is named: the GPU table's first of
/// that target, else the generic part of it.
[[nodiscard]] ptx::Gpu default_gpu(std::string_view target);

/// The memory of one emulated GPU. Addresses are 64-bit numbers that mean something only to the
/// device; nothing is committed until it is touched.
///
/// Threads: one launch at a time; the other members may be called from one thread at a time.
class Device {
 public:
  explicit Device(const ptx::Gpu& gpu);
  Device(Device&&) noexcept;
  Device& operator=(Device&&) noexcept;
  ~Device();

  [[nodiscard]] const ptx::Gpu& gpu() const noexcept;

  /// A new allocation of `bytes` (at least 1), 256-byte aligned, not initialised, with red zones
  /// around it. `name` is what findings call it ("argument 2"). Throws `Error` (Stage::Emulate,
  /// code "out-of-memory") beyond the GPU's memory.
  [[nodiscard]] std::uint64_t allocate(std::uint64_t bytes, std::string_view name = {});
  /// Frees it; the addresses are not given out again for a while, so that a use after free is
  /// found. Throws `Error` (code "invalid-address") if `address` is no start of an allocation.
  void free(std::uint64_t address);
  /// Kernels may only read it from now on.
  void protect(std::uint64_t address);
  /// Start and size of the allocation that holds `address`; size 0 if none does.
  struct Extent {
    std::uint64_t start = 0;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] Extent allocation_of(std::uint64_t address) const noexcept;

  /// Host copies. A write marks the bytes as initialised, a read does not ask. Throws `Error`
  /// (code "out-of-bounds") unless the bytes lie inside one allocation.
  void write(std::uint64_t address, std::span<const std::byte> bytes);
  void read(std::uint64_t address, std::span<std::byte> bytes) const;
  void fill(std::uint64_t address, std::byte value, std::uint64_t bytes);
  /// Device to device, overlapping or not; which bytes are initialised is copied too.
  void copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes);

  /// Bytes that the emulator itself keeps for the memory touched so far (bounds, initialised bits,
  /// race shadow), for the claim on its overhead.
  [[nodiscard]] std::uint64_t overhead_bytes() const noexcept;

  [[nodiscard]] AddressSpace& space() const noexcept;

 private:
  Hidden<AddressSpace> space_;
};

/// A module loaded on a device: its variables have addresses, its functions are decoded.
/// Lives no longer than its device. Any number of launches may use it, one after another.
class Program {
 public:
  /// Parses, verifies and decodes PTX text. Throws `Error`: as `ptx::parse`, or Stage::Load, code
  /// "unsupported" (instruction, line, reason) for what is not run here, or the first error of the
  /// verifier.
  [[nodiscard]] static Program load(Device& device, std::string_view ptx,
                                    std::string_view file = "<ptx>");
  /// The text of a built module, printed and read again as a driver would get it; findings name the
  /// C++ calls that built it.
  [[nodiscard]] static Program load(Device& device, const ptx::Module& module);

  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();

  /// A kernel, as its head declares it.
  struct Kernel {
    std::string name;
    struct Parameter {
      std::string name;
      ptx::Type type = ptx::Type::none;
      std::uint32_t offset = 0;  ///< bytes, in the parameter block
      std::uint32_t bytes = 0;
    };
    std::vector<Parameter> parameters;
    std::uint32_t parameter_bytes = 0;
    std::uint32_t static_shared_bytes = 0;
    std::uint32_t local_bytes = 0;      ///< a thread, calls not counted
    std::uint32_t registers_32bit = 0;  ///< declared, not allocated
    Dim3 required_block{0, 0, 0};       ///< .reqntid, or all zero
    std::uint32_t max_threads = 1024;   ///< .maxntid
    Dim3 required_cluster{0, 0, 0};     ///< .reqnctapercluster, or all zero
    std::uint32_t max_cluster = 16;     ///< blocks, .maxclusterrank
    bool explicit_cluster = false;      ///< .explicitcluster
  };
  [[nodiscard]] std::span<const Kernel> kernels() const noexcept;
  /// nullptr if there is no such entry.
  [[nodiscard]] const Kernel* find_kernel(std::string_view name) const noexcept;
  /// A module-level `.global` or `.const` variable; size 0 if there is none of that name.
  [[nodiscard]] Device::Extent variable(std::string_view name) const noexcept;
  [[nodiscard]] const ptx::Module& module() const noexcept;
  [[nodiscard]] const Image& image() const noexcept;

 private:
  Program();
  Hidden<Image> image_;
};

/// Progress of a launch: blocks done and blocks in all. Called from one thread at a time: at the
/// end, at each 256th part of the blocks, and otherwise about every 200 milliseconds, with the
/// count of the call before where no block has ended since.
struct Progress {
  void (*report)(void* user, std::uint64_t done, std::uint64_t total) = nullptr;
  void* user = nullptr;
};

struct Options {
  RuleSet checks = RuleSet::defaults();
  std::vector<Suppression> suppressions;
  bool counters = true;
  /// Which legal schedule: 0 is the plain one, blocks and warps in order.
  std::uint64_t seed = 0;
  std::uint64_t max_instructions = 100'000'000;  ///< for each warp
  /// For the whole launch, in warp instructions; a block counts as at least 100. A launch that
  /// exceeds it is stopped by `instruction-budget`, after the same block whatever `threads` is.
  /// 0: no limit.
  std::uint64_t max_launch_instructions = 20'000'000'000;
  /// Host threads, 0 for one a core.
  unsigned threads = 0;
  /// Blocks run in any order, at the same time, even where the result may depend on their order
  /// (float atomics, atomics whose result is used, relaxed, acquire and volatile accesses).
  bool parallel = false;
  /// Accesses outside of a buffer or shared array, but inside memory that a GPU maps with it
  /// (RunFinding::mapped), reach that memory, as on hardware; it belongs to no allocation.
  /// Otherwise such loads give 0 and such stores do nothing. The finding is the same.
  bool mapped_pages = false;
  std::uint32_t stack_bytes = 65536;  ///< local memory of a thread for calls
  std::uint32_t printf_bytes = 1u << 20;
  Progress progress;
};

struct Launch {
  std::string_view kernel;
  Dim3 grid;
  Dim3 block;
  Dim3 cluster;  ///< {1,1,1} for none, or what the kernel asks for
  std::uint32_t dynamic_shared_bytes = 0;
  /// As cuLaunchCooperativeKernel: the kernel finds the workspace by which all its blocks wait for
  /// each other. Without it a grid-wide barrier (`grid.sync()` of cooperative groups) is an error.
  bool cooperative = false;
  /// The parameter block: each parameter at its offset (Program::Kernel::parameters).
  std::span<const std::byte> parameters;
};

/// What a GPU maps around a buffer: cuMemGetAllocationGranularity answers 2 MiB on all GPUs since
/// Pascal, and smaller allocations share such a page.
inline constexpr std::uint64_t kPageBytes = std::uint64_t{1} << 21;

/// A finding of a run: what, where, by whom.
struct RunFinding {
  Rule rule{};
  Finding finding;  ///< severity, message, PTX line, C++ call, source line, details
  Dim3 block{0, 0, 0};
  Dim3 thread{0, 0, 0};
  bool has_thread = false;
  struct Other {
    std::uint32_t line = 0;
    Dim3 block{0, 0, 0};
    Dim3 thread{0, 0, 0};
  };
  bool has_other = false;
  Other other;
  std::uint64_t count = 1;  ///< equal findings that were merged
  /// The access lies outside of its buffer or shared array, but inside memory that a GPU maps with
  /// it (kPageBytes, the shared memory granule): hardware does not fault.
  bool mapped = false;
};

enum class Status : std::uint8_t {
  Ok,        ///< ran to the end, no finding of severity error
  Findings,  ///< ran to the end, with errors
  Fault,     ///< stopped: trap, assert, deadlock, budget
};

struct Result {
  Status status = Status::Ok;
  std::vector<RunFinding> findings;  ///< by block in launch order, then by line; merged
  std::string printed;               ///< device printf, by block in launch order
  Counters counters;
  /// Rules that this run did not check. `nondeterminism` is of several runs, and in none of them.
  RuleSet unchecked;
  double seconds = 0;  ///< of the host, execution only
};

/// Runs one launch to its end. Throws `Error` (Stage::Launch) for a launch that a driver would
/// refuse: no such kernel ("not-found"), sizes of grid, block, cluster or shared memory
/// ("launch-limits"), a parameter block of the wrong size ("parameters").
[[nodiscard]] Result run(Program& program, const Launch& launch, const Options& options = {});

/// `to_text(finding)` with block, thread, other party and count in it.
[[nodiscard]] std::string to_text(const RunFinding& finding);

}  // namespace ptxgen::inline v0::emulator
