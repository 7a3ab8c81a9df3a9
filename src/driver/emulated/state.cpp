// src/driver/emulated/state.cpp - live handles, GPUs, exceptions to codes
#include "driver/emulated/state.hpp"

#include <algorithm>
#include <new>
#include <shared_mutex>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "driver/emulated/arrays.hpp"
#include "driver/emulated/entries.hpp"
#include "driver/emulated/green_contexts.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

enum class Kind : std::uint8_t {
  Context,
  Stream,
  Event,
  Module,
  Function,
  Graph,
  GraphNode,
  GraphExec,
  Link,
  MemoryPool,
  Library,
  Kernel,
  UserObject,
  Array,
  GreenContext,
  ResourceDesc,
};

struct Living {
  Kind kind;
  std::shared_ptr<void> owner;  ///< null: owned elsewhere
};

struct Gpu {
  ptx::Gpu gpu;
  std::string name, full_name, target;
};

struct State {
  std::shared_mutex mutex;
  std::unordered_map<const void*, Living> living;
  std::deque<Gpu> gpus;  ///< addresses stay
  std::atomic<bool> started{false};
  std::atomic<int> newest_ptx{90};
};

/// Never destroyed: threads of contexts may still run when the process ends.
State& state() {
  static State* const the_state = new State;
  return *the_state;
}

void enter_living(const void* handle, Kind kind, std::shared_ptr<void> owner) {
  const std::unique_lock lock(state().mutex);
  state().living.insert_or_assign(handle, Living{kind, std::move(owner)});
}

bool is_living(const void* handle, Kind kind) {
  const std::shared_lock lock(state().mutex);
  const auto found = state().living.find(handle);
  return found != state().living.end() && found->second.kind == kind;
}

template <class Object>
std::shared_ptr<Object> held(Object* handle, Kind kind) {
  const std::shared_lock lock(state().mutex);
  const auto found = state().living.find(handle);
  if (found == state().living.end() || found->second.kind != kind) return nullptr;
  return std::static_pointer_cast<Object>(found->second.owner);
}

}  // namespace

std::vector<std::shared_ptr<CUctx_st>> living_contexts() {
  const std::shared_lock lock(state().mutex);
  std::vector<std::shared_ptr<CUctx_st>> result;
  for (const auto& [handle, object] : state().living) {
    if (object.kind == Kind::Context && object.owner != nullptr) {
      result.push_back(std::static_pointer_cast<CUctx_st>(object.owner));
    }
  }
  return result;
}

std::shared_ptr<CUctx_st> hold(CUcontext handle) { return held(handle, Kind::Context); }
std::shared_ptr<CUstream_st> hold(CUstream handle) { return held(handle, Kind::Stream); }
std::shared_ptr<CUevent_st> hold(CUevent handle) { return held(handle, Kind::Event); }
std::shared_ptr<CUgraph_st> hold(CUgraph handle) { return held(handle, Kind::Graph); }
std::shared_ptr<CUgraphNode_st> hold(CUgraphNode handle) { return held(handle, Kind::GraphNode); }
std::shared_ptr<CUgraphExec_st> hold(CUgraphExec handle) { return held(handle, Kind::GraphExec); }
std::shared_ptr<CUmemPoolHandle_st> hold(CUmemoryPool handle) {
  return held(handle, Kind::MemoryPool);
}
std::shared_ptr<CUlib_st> hold(CUlibrary handle) { return held(handle, Kind::Library); }
std::shared_ptr<CUkern_st> hold(CUkernel handle) { return held(handle, Kind::Kernel); }
std::shared_ptr<CUuserObject_st> hold(CUuserObject handle) {
  return held(handle, Kind::UserObject);
}
std::shared_ptr<CUarray_st> hold(CUarray handle) { return held(handle, Kind::Array); }
std::shared_ptr<CUgreenCtx_st> hold(CUgreenCtx handle) { return held(handle, Kind::GreenContext); }
std::shared_ptr<CUdevResourceDesc_st> hold(CUdevResourceDesc handle) {
  return held(handle, Kind::ResourceDesc);
}

void enroll(const std::shared_ptr<CUctx_st>& one) { enter_living(one.get(), Kind::Context, one); }
void enroll(const std::shared_ptr<CUstream_st>& one) { enter_living(one.get(), Kind::Stream, one); }
void enroll(const std::shared_ptr<CUevent_st>& one) { enter_living(one.get(), Kind::Event, one); }
void enroll(const std::shared_ptr<CUgraph_st>& one) { enter_living(one.get(), Kind::Graph, one); }
void enroll(const std::shared_ptr<CUgraphNode_st>& one) {
  enter_living(one.get(), Kind::GraphNode, one);
}
void enroll(const std::shared_ptr<CUgraphExec_st>& one) {
  enter_living(one.get(), Kind::GraphExec, one);
}
void enroll(const std::shared_ptr<CUmemPoolHandle_st>& one) {
  enter_living(one.get(), Kind::MemoryPool, one);
}
void enroll(const std::shared_ptr<CUlib_st>& one) { enter_living(one.get(), Kind::Library, one); }
void enroll(const std::shared_ptr<CUkern_st>& one) { enter_living(one.get(), Kind::Kernel, one); }
void enroll(const std::shared_ptr<CUuserObject_st>& one) {
  enter_living(one.get(), Kind::UserObject, one);
}
void enroll(const std::shared_ptr<CUarray_st>& one) { enter_living(one.get(), Kind::Array, one); }
void enroll(const std::shared_ptr<CUgreenCtx_st>& one) {
  enter_living(one.get(), Kind::GreenContext, one);
}
void enroll(const std::shared_ptr<CUdevResourceDesc_st>& one) {
  enter_living(one.get(), Kind::ResourceDesc, one);
}
void enroll_alias(CUcontext alias, const std::shared_ptr<CUctx_st>& context) {
  enter_living(alias, Kind::Context, context);
}

bool living(CUcontext handle) { return is_living(handle, Kind::Context); }
bool living(CUstream handle) { return is_living(handle, Kind::Stream); }
bool living(CUevent handle) { return is_living(handle, Kind::Event); }
bool living(CUmodule handle) { return is_living(handle, Kind::Module); }
bool living(CUfunction handle) { return is_living(handle, Kind::Function); }
bool living(CUgraph handle) { return is_living(handle, Kind::Graph); }
bool living(CUgraphNode handle) { return is_living(handle, Kind::GraphNode); }
bool living(CUgraphExec handle) { return is_living(handle, Kind::GraphExec); }
bool living(CUlinkState handle) { return is_living(handle, Kind::Link); }
bool living(CUgreenCtx handle) { return is_living(handle, Kind::GreenContext); }

std::uint64_t next_object_number() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1) + 1;
}

void born(CUmodule handle) { enter_living(handle, Kind::Module, nullptr); }
void born(CUfunction handle) { enter_living(handle, Kind::Function, nullptr); }
void born(CUlinkState handle) { enter_living(handle, Kind::Link, nullptr); }

bool gone(const void* handle) {
  std::shared_ptr<void> owner;  // destroyed without the lock
  const std::unique_lock lock(state().mutex);
  const auto found = state().living.find(handle);
  if (found == state().living.end()) return false;
  owner = std::move(found->second.owner);
  state().living.erase(found);
  return true;
}

void forget_handles_of(CUcontext context) {
  std::vector<std::shared_ptr<void>> owners;
  const std::unique_lock lock(state().mutex);
  for (auto one = state().living.begin(); one != state().living.end();) {
    const Living& living = one->second;
    const bool its_own =
        (living.kind == Kind::Context && living.owner.get() == context && one->first != context) ||
        (living.kind == Kind::Stream &&
         static_cast<const CUstream_st*>(living.owner.get())->context == context) ||
        (living.kind == Kind::Event &&
         static_cast<const CUevent_st*>(living.owner.get())->context == context) ||
        (living.kind == Kind::Array &&
         static_cast<const CUarray_st*>(living.owner.get())->context == context);
    if (!its_own) {
      ++one;
      continue;
    }
    owners.push_back(living.owner);
    one = state().living.erase(one);
  }
}

bool started() noexcept { return state().started.load(std::memory_order_acquire); }

const ptx::Gpu* gpu_of(CUdevice device) {
  const std::shared_lock lock(state().mutex);
  if (device < 0 || static_cast<std::size_t>(device) >= state().gpus.size()) return nullptr;
  return &state().gpus[static_cast<std::size_t>(device)].gpu;
}

int gpu_count() {
  const std::shared_lock lock(state().mutex);
  return static_cast<int>(state().gpus.size());
}

int add_gpu(const ptx::Gpu& gpu) {
  const std::unique_lock lock(state().mutex);
  std::deque<Gpu>& gpus = state().gpus;
  const auto found = std::ranges::find(gpus, gpu.name, &Gpu::name);
  if (found != gpus.end()) return static_cast<int>(found - gpus.begin());
  // The names of a generic part may belong to the caller.
  Gpu& added = gpus.emplace_back(
      Gpu{gpu, std::string(gpu.name), std::string(gpu.full_name), std::string(gpu.target)});
  added.gpu.name = added.name;
  added.gpu.full_name = added.full_name;
  added.gpu.target = added.target;
  return static_cast<int>(gpus.size()) - 1;
}

void set_newest_ptx(int version) noexcept { state().newest_ptx = version; }
int newest_ptx() noexcept { return state().newest_ptx; }

CUresult result_of_exception() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    log(CU_LOG_LEVEL_ERROR, error.message);
    if (error.code == "out-of-memory") return CUDA_ERROR_OUT_OF_MEMORY;
    if (error.code == "not-found") return CUDA_ERROR_NOT_FOUND;
    if (error.stage == Stage::Load) return CUDA_ERROR_INVALID_PTX;
    return CUDA_ERROR_INVALID_VALUE;
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const std::length_error&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const std::system_error&) {
    return CUDA_ERROR_OPERATING_SYSTEM;
  } catch (...) {
    return CUDA_ERROR_UNKNOWN;
  }
}

CUresult refuse(CUresult result, const std::string& text) {
  log(CU_LOG_LEVEL_ERROR, text);
  return result;
}

namespace entries {

CUresult init(unsigned flags) {
  return guarded([&] {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (gpu_count() == 0) static_cast<void>(add_gpu(*ptx::find_gpu("h200")));
    state().started.store(true, std::memory_order_release);
    return CUDA_SUCCESS;
  });
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::emulated
