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

class AddressSpace;  // src/emulator: device memory and its allocations
class Image;         // src/emulator: a decoded module

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
  [[nodiscard]] constexpr std::uint64_t count() const noexcept { return std::uint64_t{x} * y * z; }
  friend constexpr bool operator==(const Dim3&, const Dim3&) = default;
};

/// A GPU by name, or a generic GPU of a target such as `sm_89`, with round figures. Throws `Error`
/// (Stage::Emulate, code "unknown-gpu") that lists the names.
[[nodiscard]] ptx::Gpu gpu_named(std::string_view name);
/// The GPU that the emulator models for a `.target` by default: the first of that target in the GPU
/// table, else the generic GPU of the target.
[[nodiscard]] ptx::Gpu default_gpu(std::string_view target);

/// The memory of one emulated GPU. Addresses are 64-bit numbers, valid only for this device. Memory
/// is committed when it is first accessed.
///
/// Thread safety: one launch, and one call of another member, at a time.
class Device {
 public:
  explicit Device(const ptx::Gpu& gpu);
  Device(Device&&) noexcept;
  Device& operator=(Device&&) noexcept;
  ~Device();

  [[nodiscard]] const ptx::Gpu& gpu() const noexcept;

  /// A new allocation of `bytes` (at least 1), 256-byte aligned, not initialised, with red zones
  /// around it. Findings use `name` ("argument 2"). Throws `Error` (Stage::Emulate,
  /// code "out-of-memory") beyond the GPU's memory.
  [[nodiscard]] std::uint64_t allocate(std::uint64_t bytes, std::string_view name = {});
  /// Frees an allocation. Its addresses are not reused for a while, to detect a use after free.
  /// Throws `Error` (code "invalid-address") if `address` is not the start of an allocation.
  void free(std::uint64_t address);
  /// Makes an allocation read-only for kernels.
  void protect(std::uint64_t address);
  /// Start and size of the allocation that holds `address`; size 0 if none does.
  struct Extent {
    std::uint64_t start = 0;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] Extent allocation_of(std::uint64_t address) const noexcept;

  /// Host copies. A write marks the bytes as initialised; a read does not check it. Throws `Error`
  /// (code "out-of-bounds") unless one allocation holds the bytes.
  void write(std::uint64_t address, std::span<const std::byte> bytes);
  void read(std::uint64_t address, std::span<std::byte> bytes) const;
  void fill(std::uint64_t address, std::byte value, std::uint64_t bytes);
  /// Device to device; the ranges may overlap. Also copies which bytes are initialised.
  void copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes);

  /// Whether host copies note which bytes they initialise, which takes an eighth of the memory; at
  /// first they do. Turning it on again takes all bytes of all allocations as initialised.
  void track_initialised(bool on);

  /// Host bytes of the emulator's own records of the accessed memory: bounds, initialised bits,
  /// race shadow.
  [[nodiscard]] std::uint64_t overhead_bytes() const noexcept;

  [[nodiscard]] AddressSpace& space() const noexcept;

 private:
  Hidden<AddressSpace> space_;
};

/// A module loaded on a device: its variables are allocated, its functions decoded. Must not
/// outlive its device. Launches may use it one after another.
class Program {
 public:
  /// Parses, verifies and decodes PTX text. Throws `Error`: as `ptx::parse`, the first error of the
  /// verifier, or Stage::Load, code "unsupported" (instruction, line, reason) for an instruction
  /// that the emulator does not support.
  [[nodiscard]] static Program load(Device& device, std::string_view ptx,
                                    std::string_view file = "<ptx>");
  /// Prints and parses a built module, as a driver would get it. Findings name the C++ calls that
  /// built it.
  [[nodiscard]] static Program load(Device& device, const ptx::Module& module);

  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();

  /// A kernel declaration.
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
    std::uint32_t local_bytes = 0;      ///< of a thread, without calls
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

/// Progress of a launch: finished blocks and all blocks. Called from one thread at a time: at the
/// end, after each 256th of the blocks, and about every 200 milliseconds, also if no block has
/// finished since the last call.
struct Progress {
  void (*report)(void* user, std::uint64_t done, std::uint64_t total) = nullptr;
  void* user = nullptr;
};

struct Options {
  RuleSet checks = RuleSet::defaults();
  std::vector<Suppression> suppressions;
  bool counters = true;
  /// Selects a legal schedule; 0 runs blocks and warps in order.
  std::uint64_t seed = 0;
  std::uint64_t max_instructions = 100'000'000;  ///< for each warp
  /// Warp instructions of the whole launch; a block counts as at least 100. Rule
  /// `instruction-budget` stops a launch that exceeds it, after the same block for any `threads`.
  /// 0: no limit.
  std::uint64_t max_launch_instructions = 20'000'000'000;
  /// Host threads; 0: one for each core.
  unsigned threads = 0;
  /// Runs blocks in any order and concurrently, even if the result may depend on their order (float
  /// atomics, atomics whose result is used, relaxed, acquire and volatile accesses).
  bool parallel = false;
  /// Performs accesses outside of a buffer or shared array, but inside memory that a GPU maps with
  /// it (RunFinding::mapped), as hardware does. Otherwise such loads give 0 and such stores do
  /// nothing. The finding is the same.
  bool mapped_pages = false;
  std::uint32_t stack_bytes = 65536;  ///< local memory of a thread for calls
  std::uint32_t printf_bytes = 1u << 20;
  Progress progress;
};

struct Launch {
  std::string_view kernel;
  Dim3 grid;
  Dim3 block;
  Dim3 cluster;  ///< {1,1,1}: none, or what the kernel requires
  std::uint32_t dynamic_shared_bytes = 0;
  /// As cuLaunchCooperativeKernel: provides the workspace of the grid barrier. Without it a grid
  /// barrier
  /// (`grid.sync()` of cooperative groups) is an error.
  bool cooperative = false;
  /// The parameter block: each parameter at its offset (Program::Kernel::parameters).
  std::span<const std::byte> parameters;
};

/// The page size of a GPU: cuMemGetAllocationGranularity returns 2 MiB on all GPUs since Pascal,
/// and smaller allocations share a page.
inline constexpr std::uint64_t kPageBytes = std::uint64_t{1} << 21;

/// A finding of a run: what, where, and by which threads.
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
  /// The access is outside of its buffer or shared array, but inside memory that a GPU maps with it
  /// (kPageBytes, the shared memory granule): hardware does not fault.
  bool mapped = false;
};

enum class Status : std::uint8_t {
  Ok,        ///< completed, no finding of severity error
  Findings,  ///< completed, with errors
  Fault,     ///< stopped: trap, assert, deadlock, budget
};

struct Result {
  Status status = Status::Ok;
  std::vector<RunFinding> findings;  ///< by block in launch order, then by line; merged
  std::string printed;               ///< device printf, by block in launch order
  Counters counters;
  /// Rules that this run did not check. Never `nondeterminism`, which needs several runs.
  RuleSet unchecked;
  double seconds = 0;  ///< host time, execution only
};

/// Runs one launch. Throws `Error` (Stage::Launch) for a launch that a driver would refuse: no such
/// kernel ("not-found"), sizes of grid, block, cluster or shared memory
/// ("launch-limits"), a parameter block of the wrong size ("parameters").
[[nodiscard]] Result run(Program& program, const Launch& launch, const Options& options = {});

/// `to_text(finding)` with block, thread, other thread and count.
[[nodiscard]] std::string to_text(const RunFinding& finding);

}  // namespace ptxgen::inline v0::emulator
