// src/driver/emulated/context.cpp - contexts: primary, created, current ones; launch options
#include <algorithm>
#include <new>
#include <utility>

#include "driver/emulated/entries.hpp"
#include "driver/emulated/graph_memory.hpp"
#include "driver/emulated/green_contexts.hpp"
#include "driver/emulated/reservations.hpp"
#include "driver/emulated/state.hpp"
#include "emulator/state/address_space.hpp"

namespace ptxgen::inline v0::driver {

CUctx_st::CUctx_st(CUdevice ordinal, const ptx::Gpu& gpu, unsigned its_flags, bool is_primary)
    : device(ordinal),
      flags(its_flags),
      primary(is_primary),
      memory(gpu),
      legacy(std::make_shared<CUstream_st>(this, 0u, 0)),
      per_thread(std::make_shared<CUstream_st>(this, 0u, 0)),
      reservations(std::make_unique<emulated::Reservations>()),
      graph_memories(std::make_shared<emulated::GraphMemories>()),
      options(emulated::default_options()) {
  // The address of pinned memory is then the same for the host and for kernels.
  memory.space().unify();
  limits = {{CU_LIMIT_STACK_SIZE, 1024},
            {CU_LIMIT_PRINTF_FIFO_SIZE, options.printf_bytes},
            {CU_LIMIT_MALLOC_HEAP_SIZE, std::size_t{8} << 20},
            {CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 2048},
            {CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 64},
            {CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0}};
}

CUctx_st::~CUctx_st() { shut_down(); }

namespace emulated {
namespace {

/// A primary context has one address for the life of the process, as libcuda's has: programs keep
/// the handle across a reset.
struct Primary {
  unsigned count = 0;
  unsigned flags = 0;
  std::shared_ptr<CUctx_st> context;
  void* place = nullptr;
  std::shared_ptr<std::atomic<bool>> taken = std::make_shared<std::atomic<bool>>(false);
};

struct Primaries {
  std::mutex mutex;
  std::deque<Primary> of_device;
  std::atomic<std::uint64_t> created{0};  ///< primary contexts ever
  Primary& at(CUdevice device) {
    while (of_device.size() <= static_cast<std::size_t>(device)) of_device.emplace_back();
    return of_device[static_cast<std::size_t>(device)];
  }
};

Primaries& primaries() {
  static Primaries* const the_primaries = new Primaries;
  return *the_primaries;
}

std::shared_ptr<CUctx_st> make_primary(CUdevice device, const ptx::Gpu& gpu, Primary& primary) {
  primaries().created.fetch_add(1, std::memory_order_release);
  constexpr std::align_val_t kAlignment{alignof(CUctx_st)};
  if (primary.place == nullptr) primary.place = ::operator new(sizeof(CUctx_st), kAlignment);
  // A call in progress may still use the previous one.
  if (primary.taken->load()) {
    return std::make_shared<CUctx_st>(device, gpu, primary.flags, true);
  }
  auto* const created = new (primary.place) CUctx_st(device, gpu, primary.flags, true);
  primary.taken->store(true);
  return {created, [taken = primary.taken](CUctx_st* context) {
            context->~CUctx_st();
            taken->store(false);
          }};
}

/// An entry of a thread's stack of current contexts. Holds none of them.
struct Current {
  CUcontext handle = nullptr;
  std::weak_ptr<CUctx_st> context;
  CUdevice device = 0;
  bool primary = false;
  CUgreenCtx green = nullptr;  ///< whose handle it is, or null
  std::uint64_t seen = 0;      ///< number of primary contexts created at the last check
};

/// Trivially destructible: static objects of the caller may call the driver after this thread's
/// variables are destroyed.
thread_local bool stack_is_gone = false;

struct Stack {
  Stack() = default;
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  ~Stack() { stack_is_gone = true; }
  std::vector<Current> entries;
};

std::vector<Current>& stack() {
  if (stack_is_gone) {
    static thread_local std::vector<Current>* late = nullptr;
    if (late == nullptr) late = new std::vector<Current>;
    return *late;
  }
  static thread_local Stack the_stack;
  return the_stack.entries;
}

/// Of the handle of a context, its own or a green context's.
Current entry_of(const std::shared_ptr<CUctx_st>& context, CUcontext handle) {
  const bool alias = handle != context.get();
  return {handle, context, context->device, context->primary, alias ? green_of(handle) : nullptr};
}
Current entry_of(const std::shared_ptr<CUctx_st>& context) {
  return entry_of(context, context.get());
}

/// The context of the topmost entry, or null if it was destroyed. A primary one that was destroyed
/// and retained again is current again.
std::shared_ptr<CUctx_st> top_context() {
  if (stack().empty()) return nullptr;
  Current& top = stack().back();
  if (top.green != nullptr && !living(top.handle)) return nullptr;
  std::shared_ptr<CUctx_st> context = top.context.lock();
  if (context && living(context.get())) return context;
  if (!top.primary || top.green != nullptr) return nullptr;
  const std::lock_guard lock(primaries().mutex);
  context = primaries().at(top.device).context;
  if (context) top = entry_of(context);
  return context;
}

CUresult check_flags(unsigned flags) {
  const unsigned schedule = flags & CU_CTX_SCHED_MASK;
  const bool one_bit = (schedule & (schedule - 1)) == 0;
  return one_bit && (flags & ~unsigned{CU_CTX_FLAGS_MASK}) == 0 ? CUDA_SUCCESS
                                                                : CUDA_ERROR_INVALID_VALUE;
}

void begin(const std::shared_ptr<CUctx_st>& context) {
  context->start();
  enroll(context);
  enroll(context->legacy);
  enroll(context->per_thread);
}

/// Removes the context; calls in progress in other threads end with an error.
void end(const std::shared_ptr<CUctx_st>& context) {
  abandon_captures_of(context.get());
  forget_handles_of(context.get());
  context->shut_down();
  forget_graph_memory_of(*context);
  const std::lock_guard lock(context->memory_mutex);
  unload_modules_of(context.get());
}

bool called_by_its_worker(const CUctx_st& context) {
  return context.worker.get_id() == std::this_thread::get_id();
}

CUresult create(CUcontext* context, unsigned flags, CUdevice device) {
  if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (check_flags(flags) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
  const ptx::Gpu* const gpu = gpu_of(device);
  if (gpu == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  const auto created = std::make_shared<CUctx_st>(device, *gpu, flags, false);
  begin(created);
  stack().push_back(entry_of(created));
  *context = created.get();
  return CUDA_SUCCESS;
}

template <class Work>
CUresult with_primary(CUdevice device, Work&& work) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    const ptx::Gpu* const gpu = gpu_of(device);
    if (gpu == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    std::shared_ptr<CUctx_st> ended;
    CUresult result = CUDA_SUCCESS;
    {
      const std::lock_guard lock(primaries().mutex);
      result = work(primaries().at(device), *gpu, ended);
      // Of two threads, only one ends it.
      if (ended && called_by_its_worker(*ended)) return CUDA_ERROR_NOT_PERMITTED;
      if (ended) {
        gone(ended.get());
        primaries().at(device).context = nullptr;
        primaries().at(device).count = 0;
      }
    }
    if (ended) end(ended);
    return result;
  });
}

}  // namespace

CUcontext current() noexcept {
  try {
    return top_context().get();
  } catch (...) {
    return nullptr;
  }
}

CUgreenCtx current_green() noexcept { return stack().empty() ? nullptr : stack().back().green; }

CUresult enter(std::shared_ptr<CUctx_st>& context) {
  if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
  if (stack().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  context = top_context();
  if (!context) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  const std::lock_guard lock(context->mutex);
  return context->fault;
}

CUresult enter(CUcontext& context) {
  std::shared_ptr<CUctx_st> held;
  const CUresult result = enter(held);
  context = held.get();
  return result;
}

std::shared_ptr<CUctx_st> context_on(CUdevice device) {
  std::shared_ptr<CUctx_st> context;
  if (enter(context) == CUDA_SUCCESS && context->device == device) return context;
  const std::lock_guard lock(primaries().mutex);
  return primaries().at(device).context;
}

emulator::Options default_options() {
  emulator::Options options;
  // Programs written for hardware may exceed a default instruction budget.
  options.max_launch_instructions = 0;
  options.mapped_pages = !strict_faults();
  return options;
}

CUresult set_launch_options(CUcontext handle, const emulator::Options& options) {
  return guarded([&] {
    const std::shared_ptr<CUctx_st> context = hold(handle);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    const std::lock_guard memory_lock(context->memory_mutex);
    const std::lock_guard lock(context->mutex);
    context->options = options;
    // Launches that are queued already may check.
    const bool checks = options.checks.has(emulator::Rule::UninitializedRead);
    if (checks || (context->queue.empty() && !context->busy)) {
      context->memory.track_initialised(checks);
    }
    return CUDA_SUCCESS;
  });
}

CUresult observe_launches(CUcontext handle, void (*report)(void* user, const LaunchReport& launch),
                          void* user) {
  return guarded([&] {
    const std::shared_ptr<CUctx_st> context = hold(handle);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    const std::lock_guard no_call(context->report_mutex);
    const std::lock_guard lock(context->mutex);
    context->report = report;
    context->report_user = user;
    return CUDA_SUCCESS;
  });
}

namespace entries {

CUresult device_primary_ctx_retain(CUcontext* context, CUdevice device) {
  return with_primary(device, [&](Primary& primary, const ptx::Gpu& gpu, auto&) {
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!primary.context) {
      const std::shared_ptr<CUctx_st> created = make_primary(device, gpu, primary);
      begin(created);
      primary.context = created;
      primary.count = 0;
    }
    ++primary.count;
    *context = primary.context.get();
    return CUDA_SUCCESS;
  });
}

CUresult device_primary_ctx_release(CUdevice device) {
  return with_primary(device, [](Primary& primary, const ptx::Gpu&, auto& ended) {
    if (primary.count == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (primary.count == 1) {
      ended = primary.context;
    } else {
      --primary.count;
    }
    return CUDA_SUCCESS;
  });
}

CUresult device_primary_ctx_reset(CUdevice device) {
  return with_primary(device, [](Primary& primary, const ptx::Gpu&, auto& ended) {
    ended = primary.context;
    return CUDA_SUCCESS;
  });
}

CUresult device_primary_ctx_get_state(CUdevice device, unsigned* flags, int* active) {
  return with_primary(device, [&](Primary& primary, const ptx::Gpu&, auto&) {
    if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = primary.context ? primary.context->flags : primary.flags;
    *active = primary.context ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

CUresult device_primary_ctx_set_flags(CUdevice device, unsigned flags) {
  return with_primary(device, [&](Primary& primary, const ptx::Gpu&, auto&) {
    if (check_flags(flags) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
    primary.flags = flags;
    return CUDA_SUCCESS;
  });
}

CUresult ctx_create_v2(CUcontext* context, unsigned flags, CUdevice device) {
  return guarded([&] { return create(context, flags, device); });
}

CUresult ctx_create_v4(CUcontext* context, CUctxCreateParams* ctx_create_params, unsigned flags,
                       CUdevice device) {
  return guarded([&]() -> CUresult {
    if (ctx_create_params != nullptr) {
      if (ctx_create_params->numExecAffinityParams != 0) {
        return refuse(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY,
                      "cuCtxCreate: the emulated driver does not support execution affinities");
      }
      if (ctx_create_params->cigParams != nullptr) {
        return refuse(
            CUDA_ERROR_NOT_SUPPORTED,
            "cuCtxCreate: the emulated driver does not support graphics interoperability");
      }
    }
    return create(context, flags, device);
  });
}

CUresult ctx_destroy(CUcontext handle) {
  return guarded([&] {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    const std::shared_ptr<CUctx_st> context = hold(handle);
    if (!context || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
    if (called_by_its_worker(*context)) return CUDA_ERROR_NOT_PERMITTED;
    if (!gone(handle)) return CUDA_ERROR_INVALID_CONTEXT;
    if (!stack().empty() && stack().back().handle == handle) stack().pop_back();
    end(context);
    return CUDA_SUCCESS;
  });
}

CUresult ctx_attach(CUcontext* context, unsigned flags) {
  return guarded([&] {
    std::shared_ptr<CUctx_st> held;
    if (const CUresult result = enter(held)) return result;
    if (context == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (held->primary) return CUDA_ERROR_INVALID_CONTEXT;
    const std::lock_guard lock(held->mutex);
    ++held->attached;
    *context = held.get();
    return CUDA_SUCCESS;
  });
}

CUresult ctx_detach(CUcontext handle) {
  return guarded([&] {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (stack().empty() || stack().back().handle != handle) return CUDA_ERROR_INVALID_CONTEXT;
    const std::shared_ptr<CUctx_st> context = hold(handle);
    if (!context || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
    {
      const std::lock_guard lock(context->mutex);
      if (--context->attached != 0) return CUDA_SUCCESS;
    }
    return ctx_destroy(handle);
  });
}

CUresult ctx_push_current(CUcontext handle) {
  return guarded([&] {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    const std::shared_ptr<CUctx_st> context = hold(handle);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    stack().push_back(entry_of(context, handle));
    return CUDA_SUCCESS;
  });
}

CUresult ctx_pop_current(CUcontext* context) {
  return guarded([&] {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (stack().empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (context != nullptr) *context = stack().back().handle;
    stack().pop_back();
    return CUDA_SUCCESS;
  });
}

CUresult ctx_set_current(CUcontext handle) {
  return guarded([&] {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (handle == nullptr) {
      if (!stack().empty()) stack().pop_back();
      return CUDA_SUCCESS;
    }
    const std::shared_ptr<CUctx_st> context = hold(handle);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (stack().empty()) {
      stack().push_back(entry_of(context, handle));
    } else {
      stack().back() = entry_of(context, handle);
    }
    return CUDA_SUCCESS;
  });
}

CUresult ctx_get_current(CUcontext* context) {
  return guarded([&] {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *context = nullptr;
    if (stack().empty()) return CUDA_SUCCESS;
    // A primary context may be retained again at another address. Every launch calls this, so it
    // searches only after a primary context was created.
    const std::uint64_t created = primaries().created.load(std::memory_order_acquire);
    if (stack().back().seen != created) {
      static_cast<void>(top_context());
      stack().back().seen = created;
    }
    *context = stack().back().handle;
    return CUDA_SUCCESS;
  });
}

CUresult ctx_get_device(CUdevice* device) {
  return guarded([&] {
    std::shared_ptr<CUctx_st> context;
    if (const CUresult result = enter(context); result != CUDA_SUCCESS) return result;
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = context->device;
    return CUDA_SUCCESS;
  });
}

CUresult ctx_get_device_v2(CUdevice* device, CUcontext handle) {
  if (handle == nullptr) return ctx_get_device(device);
  return guarded([&] {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    const std::shared_ptr<CUctx_st> context = hold(handle);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = context->device;
    return CUDA_SUCCESS;
  });
}

CUresult ctx_get_id(CUcontext handle, unsigned long long* id) {
  return guarded([&] {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUgreenCtx green = handle != nullptr ? green_of(handle) : current_green();
    if (green != nullptr) return green_ctx_get_id(green, id);
    const std::shared_ptr<CUctx_st> context = handle != nullptr ? hold(handle) : top_context();
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    *id = context->id;
    return CUDA_SUCCESS;
  });
}

CUresult ctx_get_api_version(CUcontext handle, unsigned* version) {
  return guarded([&] {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::shared_ptr<CUctx_st> context = handle != nullptr ? hold(handle) : top_context();
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    constexpr unsigned kSinceV2 = 3020;
    *version = kSinceV2;
    return CUDA_SUCCESS;
  });
}

CUresult ctx_get_stream_priority_range(int* min_priority, int* greatest_priority) {
  return guarded([&] {
    std::shared_ptr<CUctx_st> context;
    if (const CUresult result = enter(context); result != CUDA_SUCCESS) return result;
    if (min_priority != nullptr) *min_priority = kMinPriority;
    if (greatest_priority != nullptr) *greatest_priority = kGreatestPriority;
    return CUDA_SUCCESS;
  });
}

CUresult ctx_get_flags(unsigned* flags) {
  return guarded([&] {
    std::shared_ptr<CUctx_st> context;
    if (const CUresult result = enter(context); result != CUDA_SUCCESS) return result;
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = context->flags;
    return CUDA_SUCCESS;
  });
}

CUresult ctx_set_limit(CUlimit limit, std::size_t value) {
  return guarded([&] {
    std::shared_ptr<CUctx_st> context;
    if (const CUresult result = enter(context); result != CUDA_SUCCESS) return result;
    const std::lock_guard lock(context->mutex);
    if (!context->limits.contains(limit)) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    context->limits[limit] = value;
    const auto bytes =
        static_cast<std::uint32_t>(std::min<std::size_t>(value, std::size_t{1} << 30));
    if (limit == CU_LIMIT_PRINTF_FIFO_SIZE) context->options.printf_bytes = bytes;
    // Emulated calls need more stack than compiled ones: the limit can only raise it.
    if (limit == CU_LIMIT_STACK_SIZE) {
      context->options.stack_bytes = std::max(context->options.stack_bytes, bytes);
    }
    return CUDA_SUCCESS;
  });
}

CUresult ctx_get_limit(std::size_t* value, CUlimit limit) {
  return guarded([&] {
    std::shared_ptr<CUctx_st> context;
    if (const CUresult result = enter(context); result != CUDA_SUCCESS) return result;
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(context->mutex);
    const auto found = context->limits.find(limit);
    if (found == context->limits.end()) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = found->second;
    return CUDA_SUCCESS;
  });
}

/// The work of a green context is in the queue of its primary context.
CUresult ctx_synchronize_v2(CUcontext handle) {
  return guarded([&] {
    std::shared_ptr<CUctx_st> context;
    if (handle == nullptr) {
      if (const CUresult result = enter(context); result != CUDA_SUCCESS) return result;
    } else {
      if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
      context = hold(handle);
      if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (const CUresult result = not_while_captured(context.get()); result != CUDA_SUCCESS) {
      return result;
    }
    return wait_for_all(context.get());
  });
}

CUresult ctx_synchronize() { return ctx_synchronize_v2(nullptr); }

}  // namespace entries
}  // namespace emulated
}  // namespace ptxgen::inline v0::driver
