// ptxgen/support/hidden.hpp - owner of a type defined elsewhere
#pragma once

#include <utility>

namespace ptxgen::inline v0 {

/// Owns one heap object of a type that only the .cpp file knows, so that public headers need
/// neither that type nor `<memory>`. Moves, does not copy; a moved-from owner is empty.
template <class T>
class Hidden {
 public:
  Hidden() = default;

  /// Takes ownership of `new T(...)`; to be called where `T` is complete.
  template <class... Args>
  [[nodiscard]] static Hidden make(Args&&... args) {
    Hidden result;
    result.object_ = new T(std::forward<Args>(args)...);
    result.destroy_ = [](T* object) noexcept { delete object; };
    return result;
  }

  Hidden(Hidden&& other) noexcept
      : object_(std::exchange(other.object_, nullptr)), destroy_(other.destroy_) {}
  Hidden& operator=(Hidden&& other) noexcept {
    std::swap(object_, other.object_);
    std::swap(destroy_, other.destroy_);
    return *this;
  }
  Hidden(const Hidden&) = delete;
  Hidden& operator=(const Hidden&) = delete;
  ~Hidden() {
    if (object_ != nullptr) destroy_(object_);
  }

  [[nodiscard]] explicit operator bool() const noexcept { return object_ != nullptr; }
  [[nodiscard]] T& operator*() const noexcept { return *object_; }
  [[nodiscard]] T* operator->() const noexcept { return object_; }

 private:
  T* object_ = nullptr;
  void (*destroy_)(T*) noexcept = nullptr;
};

}  // namespace ptxgen::inline v0
