// src/runtime/module/function.cpp - kernels of loaded modules: limits and launches
#include <algorithm>
#include <array>

#include "runtime/module/loaded_module.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

using driver::Table;

namespace {

/// Cluster size that every device with clusters supports.
constexpr std::uint64_t kPortableCluster = 8;

std::string dims(const Dim3& d) { return format_text("{} x {} x {}", d.x, d.y, d.z); }

std::uint64_t volume(const Dim3& d) { return std::uint64_t{d.x} * d.y * d.z; }

[[noreturn]] void refuse(const FunctionFacts& function, const char* code, std::string message) {
  Error error(Stage::Launch, code, std::move(message));
  error.kernel = function.name;
  throw error.refresh();
}

[[noreturn]] void refuse_limits(const FunctionFacts& function, std::string message) {
  refuse(function, "launch-limits", std::move(message));
}

void check_extent(const FunctionFacts& function, const char* what, const Dim3& wanted,
                  const std::uint32_t (&limit)[3]) {
  const std::uint32_t sizes[3] = {wanted.x, wanted.y, wanted.z};
  for (std::size_t i = 0; i < 3; ++i) {
    if (sizes[i] != 0 && sizes[i] <= limit[i]) continue;
    const std::string named = format_text("{} of {} ", what, dims(wanted));
    const std::string axis(1, "xyz"[i]);
    if (sizes[i] == 0) refuse_limits(function, format_text("{}is empty: {} is 0", named, axis));
    refuse_limits(function, format_text("{}is too large: {} is {}, the device allows {}", named,
                                        axis, sizes[i], limit[i]));
  }
}

void check_threads(const FunctionFacts& function, const Dim3& block, const DeviceLimits& limits) {
  const std::uint64_t threads = volume(block);
  if (threads > limits.threads_per_block) {
    refuse_limits(function, format_text("a block of {} has {}, the device allows {}", dims(block),
                                        count_text(threads, "thread"), limits.threads_per_block));
  }
  const FunctionResources& uses = function.resources;
  if (threads > uses.max_threads) {
    refuse_limits(
        function,
        format_text(
            "a block of {} has {}, the kernel with its {} a thread and its directives allows {}",
            dims(block), count_text(threads, "thread"), count_text(uses.registers, "register"),
            uses.max_threads));
  }
}

void check_shared(const FunctionFacts& function, std::uint32_t dynamic,
                  const DeviceLimits& limits) {
  const std::uint64_t fixed = function.resources.static_shared;
  const std::uint64_t limit = std::max(limits.shared_per_block_opt_in, limits.shared_per_block);
  if (fixed + dynamic <= limit) return;
  refuse_limits(function,
                format_text("a block needs {} of shared memory: {} static and {} dynamic; the "
                            "device allows {} besides the {} that are reserved",
                            count_text(fixed + dynamic, "byte"), fixed, dynamic, limit,
                            limits.reserved_shared_per_block));
}

/// Large dynamic shared memory needs an opt-in. The limit only grows, so launches of several
/// threads with different sizes do not conflict.
void opt_in(const ContextCore& core, const FunctionFacts& function, std::uint32_t dynamic) {
  const DeviceLimits& limits = core.device().info().limits;
  const std::uint64_t needs =
      std::uint64_t{function.resources.static_shared} + dynamic + limits.reserved_shared_per_block;
  if (needs <= limits.shared_per_block) return;
  if (dynamic <= function.opted_in.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(function.opting_in);
  if (dynamic <= function.opted_in.load(std::memory_order_relaxed)) return;
  core.call(Stage::Launch, &Table::func_set_attribute, function.handle,
            driver::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(dynamic));
  function.opted_in.store(dynamic, std::memory_order_release);
}

void check_cluster(const ContextCore& core, const FunctionFacts& function, const Dim3& grid,
                   const Dim3& cluster) {
  if (!core.device().info().limits.clusters) {
    refuse(function, "not-supported",
           core.device().info().name + " does not support clusters; they need sm_90");
  }
  core.need(Stage::Launch, &Table::launch_kernel_ex, "a launch with clusters");
  const std::uint64_t blocks = volume(cluster);
  if (blocks == 0 || blocks > kPortableCluster) {
    refuse_limits(function, format_text("a cluster of {} has {}; valid are 1 to {}", dims(cluster),
                                        count_text(blocks, "block"), kPortableCluster));
  }
  if (grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0) {
    refuse_limits(function, format_text("a grid of {} cannot be divided into clusters of {}",
                                        dims(grid), dims(cluster)));
  }
}

void check_programmatic(const ContextCore& core, const FunctionFacts& function) {
  if (function.entry && !function.entry->waits) {
    refuse(function, "pdl-without-wait",
           "a programmatic dependent launch of a kernel without griddepcontrol.wait may read data "
           "that the previous kernel has not written yet; add the wait or launch it without "
           "programmatic");
  }
  core.need(Stage::Launch, &Table::launch_kernel_ex, "a programmatic dependent launch");
}

std::uint32_t blocks_at_once(const ContextCore& core, const FunctionFacts& function,
                             std::uint32_t threads, std::uint32_t dynamic) {
  const Current current(core, Stage::Launch);
  opt_in(core, function, dynamic);
  int blocks = 0;
  core.call(Stage::Launch, &Table::occupancy_max_active_blocks_per_multiprocessor, &blocks,
            function.handle, static_cast<int>(threads), std::size_t{dynamic});
  return static_cast<std::uint32_t>(std::max(blocks, 0));
}

void check_cooperative(const ContextCore& core, const FunctionFacts& function,
                       const LaunchGeometry& geometry) {
  const DeviceLimits& limits = core.device().info().limits;
  if (!limits.cooperative) {
    refuse(function, "not-supported",
           core.device().info().name + " does not support cooperative launches");
  }
  core.need(Stage::Launch, &Table::launch_kernel_ex, "a cooperative launch");
  const auto threads = static_cast<std::uint32_t>(volume(geometry.block));
  const std::uint64_t limit =
      std::uint64_t{blocks_at_once(core, function, threads, geometry.dynamic_shared_bytes)} *
      limits.multiprocessors;
  if (volume(geometry.grid) > limit) {
    refuse_limits(function, format_text("a cooperative launch of {}, the device holds {} at once",
                                        count_text(volume(geometry.grid), "block"), limit));
  }
}

/// The attributes of a launch, from its geometry or its options.
LaunchOptions asked(const LaunchGeometry& geometry, LaunchOptions options) {
  if (options.cluster == Dim3{}) options.cluster = geometry.cluster;
  options.programmatic |= geometry.programmatic;
  options.cooperative |= geometry.cooperative;
  return options;
}

void check_launch(const ContextCore& core, const FunctionFacts& function,
                  const LaunchGeometry& geometry, const LaunchOptions& options) {
  const DeviceLimits& limits = core.device().info().limits;
  check_extent(function, "a grid", geometry.grid, limits.grid);
  check_extent(function, "a block", geometry.block, limits.block);
  check_threads(function, geometry.block, limits);
  check_shared(function, geometry.dynamic_shared_bytes, limits);
  if (options == LaunchOptions{}) return;
  if (options.cluster != Dim3{}) check_cluster(core, function, geometry.grid, options.cluster);
  if (options.programmatic) check_programmatic(core, function);
  if (options.cooperative) check_cooperative(core, function, geometry);
}

std::uint32_t attribute(const ContextCore& core, driver::CUfunction function,
                        driver::CUfunction_attribute which) {
  int value = 0;
  core.call(Stage::Load, &Table::func_get_attribute, &value, which, function);
  return static_cast<std::uint32_t>(std::max(value, 0));
}

FunctionResources ask_resources(const ContextCore& core, driver::CUfunction function) {
  using namespace driver;
  FunctionResources uses;
  uses.registers = attribute(core, function, CU_FUNC_ATTRIBUTE_NUM_REGS);
  uses.local = attribute(core, function, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  uses.static_shared = attribute(core, function, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  uses.constant = attribute(core, function, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
  uses.max_threads = attribute(core, function, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  uses.ptx_version = attribute(core, function, CU_FUNC_ATTRIBUTE_PTX_VERSION);
  uses.binary_version = attribute(core, function, CU_FUNC_ATTRIBUTE_BINARY_VERSION);
  return uses;
}

[[noreturn]] void throw_launch(const ContextCore& core, const FunctionFacts& function,
                               const FailedCall& failed) {
  Error error = core.failure(Stage::Launch, failed);
  error.kernel = function.name;
  throw error.refresh();
}

driver::CUresult launch_with(const ContextCore& core, const FunctionFacts& function,
                             const Stream& stream, const LaunchGeometry& geometry,
                             const LaunchOptions& options, void** extra) {
  std::array<driver::CUlaunchAttribute, 3> attributes{};
  driver::CUlaunchConfig config{};
  config.gridDimX = geometry.grid.x;
  config.gridDimY = geometry.grid.y;
  config.gridDimZ = geometry.grid.z;
  config.blockDimX = geometry.block.x;
  config.blockDimY = geometry.block.y;
  config.blockDimZ = geometry.block.z;
  config.sharedMemBytes = geometry.dynamic_shared_bytes;
  config.hStream = stream.handle();
  config.attrs = attributes.data();
  const auto add = [&](driver::CUlaunchAttributeID id) -> driver::CUlaunchAttributeValue& {
    driver::CUlaunchAttribute& next = attributes[config.numAttrs++];
    next.id = id;
    return next.value;
  };
  if (options.cluster != Dim3{}) {
    auto& cluster = add(driver::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim;
    cluster.x = options.cluster.x;
    cluster.y = options.cluster.y;
    cluster.z = options.cluster.z;
  }
  if (options.cooperative) add(driver::CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative = 1;
  if (options.programmatic) {
    add(driver::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
        .programmaticStreamSerializationAllowed = 1;
  }
  return core.table().launch_kernel_ex(&config, function.handle, nullptr, extra);
}

}  // namespace

Function Module::function(std::string_view name) const {
  const LoadedModule& module = *state_->module;
  const ContextCore& core = module.core();
  const auto state = [&](const FunctionFacts& facts) {
    return Function(Hidden<Function::State>::make(Function::State{state_->module, &facts}));
  };
  const std::lock_guard lock(module.mutex);
  if (const auto known = module.functions.find(name); known != module.functions.end()) {
    return state(known->second);
  }
  core.alive(Stage::Load);
  const Current current(core, Stage::Load);
  const std::string zero_ended(name);
  driver::CUfunction handle = nullptr;
  const driver::CUresult result =
      core.table().module_get_function(&handle, module.module.handle, zero_ended.c_str());
  if (result != driver::CUDA_SUCCESS) {
    Error error = core.failure(Stage::Load, {&row_of(&Table::module_get_function), result},
                               format_text("looking for the kernel '{}'", zero_ended));
    if (result == driver::CUDA_ERROR_NOT_FOUND) {
      error.code = "not-found";
      for (const EntryFacts& entry : module.entries) {
        error.message += (&entry == module.entries.data() ? "; the module has " : ", ");
        error.message += entry.name;
      }
    }
    error.kernel = zero_ended;
    throw error.refresh();
  }
  const FunctionResources uses = ask_resources(core, handle);
  FunctionFacts& facts = module.functions[zero_ended];
  facts.name = zero_ended;
  facts.handle = handle;
  facts.resources = uses;
  for (const EntryFacts& entry : module.entries) {
    if (entry.name == name) facts.entry = entry;
  }
  return state(facts);
}

Function::Function(Hidden<State> state) : state_(std::move(state)) {}
Function::Function(const Function& other)
    : state_(other.state_ ? Hidden<State>::make(*other.state_) : Hidden<State>()) {}
Function::Function(Function&&) noexcept = default;
Function& Function::operator=(Function&& other) noexcept {
  const Function old(static_cast<Function&&>(*this));
  state_ = std::move(other.state_);
  return *this;
}
Function::~Function() = default;

std::string_view Function::name() const noexcept { return state_->facts->name; }
const FunctionResources& Function::resources() const noexcept { return state_->facts->resources; }
const Signature* Function::signature() const noexcept {
  const std::optional<EntryFacts>& entry = state_->facts->entry;
  return entry ? &entry->signature : nullptr;
}
driver::CUfunction Function::handle() const noexcept { return state_->facts->handle; }
const ContextCore& Function::core() const noexcept { return state_->module->core(); }

std::uint32_t Function::blocks_per_multiprocessor(std::uint32_t threads,
                                                  std::uint32_t dynamic_shared) const {
  core().alive(Stage::Launch);
  return blocks_at_once(core(), *state_->facts, threads, dynamic_shared);
}

void Function::check(const LaunchGeometry& geometry, const LaunchOptions& options) const {
  check_launch(core(), *state_->facts, geometry, asked(geometry, options));
}

void Function::allow(const LaunchGeometry& geometry, const LaunchOptions& options) const {
  const ContextCore& core = this->core();
  core.alive(Stage::Launch);
  check_launch(core, *state_->facts, geometry, asked(geometry, options));
  const Current current(core, Stage::Launch);
  opt_in(core, *state_->facts, geometry.dynamic_shared_bytes);
}

std::vector<std::byte> Function::pack(std::span<const LaunchValue> arguments) const {
  if (const Signature* known = signature()) return pack_arguments(name(), *known, arguments);
  refuse(*state_->facts, "arguments",
         "it was loaded from an image, whose parameters are unknown; load the image with its PTX, "
         "or pass a packed argument block (Kernel<...>::pack)");
}

void Function::keep_for_captures() const {
  if (core().capturing()) core().keep_for_captures(state_->module);
}

void Function::launch(const Stream& stream, const LaunchGeometry& geometry,
                      std::span<const std::byte> arguments, const LaunchOptions& wanted) const {
  const LaunchOptions options = asked(geometry, wanted);
  const ContextCore& core = this->core();
  const FunctionFacts& function = *state_->facts;
  core.alive(Stage::Launch);
  core.same(Stage::Launch, stream.core(), "the stream");
  check_launch(core, function, geometry, options);
  if (function.entry && function.entry->signature.size() != arguments.size()) {
    refuse(function, "arguments",
           format_text("the arguments have {} bytes, the kernel's parameters {}", arguments.size(),
                       function.entry->signature.size()));
  }
  Span span(core.trace(), "launch", "runtime");
  span.argument("kernel", function.name);
  const Current current(core, Stage::Launch);
  opt_in(core, function, geometry.dynamic_shared_bytes);
  keep_for_captures();
  std::size_t bytes = arguments.size();
  // cuda.h takes non-const pointers; the driver only reads.
  void* extra[] = {reinterpret_cast<void*>(driver::kLaunchParamBufferPointer),
                   const_cast<std::byte*>(arguments.data()),
                   reinterpret_cast<void*>(driver::kLaunchParamBufferSize), &bytes,
                   reinterpret_cast<void*>(driver::kLaunchParamEnd)};
  void** const block = bytes == 0 ? nullptr : extra;
  if (options != LaunchOptions{}) {
    const driver::CUresult result = launch_with(core, function, stream, geometry, options, block);
    if (result == driver::CUDA_SUCCESS) return;
    throw_launch(core, function, {&row_of(&Table::launch_kernel_ex), result});
  }
  const driver::CUresult result =
      core.table().launch_kernel(function.handle, geometry.grid.x, geometry.grid.y, geometry.grid.z,
                                 geometry.block.x, geometry.block.y, geometry.block.z,
                                 geometry.dynamic_shared_bytes, stream.handle(), nullptr, extra);
  if (result == driver::CUDA_SUCCESS) return;
  throw_launch(core, function, {&row_of(&Table::launch_kernel), result});
}

}  // namespace ptxgen::inline v0
