// src/driver/emulated/user_objects.cpp - objects of the caller that graphs keep alive
#include "driver/emulated/user_objects.hpp"

#include <thread>

#include "driver/emulated/entries.hpp"
#include "driver/emulated/graphs.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

void destroy(CUuserObject_st& object) {
  gone(&object);
  const CUhostFn function = object.destroy;
  void* const data = object.data;
  try {
    std::thread([function, data] { function(data); }).detach();
  } catch (const std::exception&) {
    function(data);  // no thread available
  }
}

template <class Work>
CUresult with_object(CUuserObject handle, unsigned count, Work&& work) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    const std::shared_ptr<CUuserObject_st> object = hold(handle);
    if (!object || count == 0) return CUDA_ERROR_INVALID_VALUE;
    return work(object);
  });
}

}  // namespace

void retain(CUuserObject_st& object, std::uint64_t count) {
  const std::lock_guard lock(object.mutex);
  object.count += count;
}

bool release(CUuserObject_st& object, std::uint64_t count) {
  {
    const std::lock_guard lock(object.mutex);
    if (count > object.count) return false;
    object.count -= count;
    if (object.count != 0 || count == 0) return true;
  }
  destroy(object);
  return true;
}

UserReferences::UserReferences(const UserReferences& other)
    : object_(other.object_), count_(other.count_) {
  retain(*object_, count_);
}

UserReferences::~UserReferences() { static_cast<void>(release(*object_, count_)); }

void UserReferences::add(std::uint64_t count, bool moved) {
  if (!moved) retain(*object_, count);
  count_ += count;
}

bool UserReferences::take(std::uint64_t count) {
  if (count > count_) return false;
  count_ -= count;
  return release(*object_, count);
}

namespace entries {

CUresult user_object_create(CUuserObject* object_out, void* data, CUhostFn destroy_function,
                            unsigned initial_refcount, unsigned flags) {
  return guarded([&] {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (object_out == nullptr || destroy_function == nullptr || initial_refcount == 0 ||
        flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const auto result =
        std::make_shared<CUuserObject_st>(data, destroy_function, std::uint64_t{initial_refcount});
    enroll(result);
    *object_out = result.get();
    return CUDA_SUCCESS;
  });
}

CUresult user_object_retain(CUuserObject handle, unsigned count) {
  return with_object(handle, count, [&](const auto& object) {
    retain(*object, count);
    return CUDA_SUCCESS;
  });
}

CUresult user_object_release(CUuserObject handle, unsigned count) {
  return with_object(handle, count, [&](const auto& object) {
    return release(*object, count) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult graph_retain_user_object(CUgraph handle, CUuserObject object_handle, unsigned count,
                                  unsigned flags) {
  return with_object(object_handle, count, [&](const auto& object) {
    if ((flags & ~unsigned{CU_GRAPH_USER_OBJECT_MOVE}) != 0) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(graphs_mutex());
    const std::shared_ptr<CUgraph_st> graph = hold(handle);
    if (!graph) return CUDA_ERROR_INVALID_VALUE;
    graph->user_objects.try_emplace(object_handle, object)
        .first->second.add(count, (flags & CU_GRAPH_USER_OBJECT_MOVE) != 0);
    return CUDA_SUCCESS;
  });
}

CUresult graph_release_user_object(CUgraph handle, CUuserObject object_handle, unsigned count) {
  return with_object(object_handle, count, [&](const auto&) {
    const std::lock_guard lock(graphs_mutex());
    const std::shared_ptr<CUgraph_st> graph = hold(handle);
    if (!graph) return CUDA_ERROR_INVALID_VALUE;
    const auto found = graph->user_objects.find(object_handle);
    if (found == graph->user_objects.end() || !found->second.take(count)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (found->second.count() == 0) graph->user_objects.erase(found);
    return CUDA_SUCCESS;
  });
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::emulated
