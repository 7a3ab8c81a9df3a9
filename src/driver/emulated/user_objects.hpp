// src/driver/emulated/user_objects.hpp - objects of the caller that graphs keep alive
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "ptxgen/driver/api.hpp"

namespace ptxgen::inline v0::driver {

/// Counts references of the caller and of graphs. At zero `destroy` runs in a separate thread,
/// because the last reference may be released with a lock held.
struct CUuserObject_st {
  CUuserObject_st(void* its_data, CUhostFn its_destroy, std::uint64_t first) noexcept
      : data(its_data), destroy(its_destroy), count(first) {}

  void* const data;
  const CUhostFn destroy;
  std::mutex mutex;
  std::uint64_t count;  ///< guarded by the mutex
};

namespace emulated {

/// Adds references.
void retain(CUuserObject_st& object, std::uint64_t count);
/// Releases references; false without a change if there are fewer.
bool release(CUuserObject_st& object, std::uint64_t count);

/// The references that one graph has to one object. A copy has as many of its own.
class UserReferences {
 public:
  explicit UserReferences(std::shared_ptr<CUuserObject_st> object) noexcept
      : object_(std::move(object)) {}
  UserReferences(const UserReferences& other);
  UserReferences& operator=(const UserReferences&) = delete;
  ~UserReferences();

  /// `moved`: references that the caller had.
  void add(std::uint64_t count, bool moved);
  /// False if the graph has fewer.
  [[nodiscard]] bool take(std::uint64_t count);
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

 private:
  std::shared_ptr<CUuserObject_st> object_;
  std::uint64_t count_ = 0;
};
using UserObjects = std::map<CUuserObject, UserReferences>;

}  // namespace emulated
}  // namespace ptxgen::inline v0::driver
