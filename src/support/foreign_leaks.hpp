// src/support/foreign_leaks.hpp - leak suppressions for foreign libraries
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/lsan_interface.h>
#define PTXGEN_LEAKS_WATCHED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(PTXGEN_LEAKS_WATCHED)
#include <sanitizer/lsan_interface.h>
#define PTXGEN_LEAKS_WATCHED
#endif

namespace ptxgen::inline v0 {

/// While one lives, what this thread allocates is not reported as leaked by a build with
/// AddressSanitizer; in other builds it does nothing. For single calls into libraries that leak.
class ForeignLeaks {
 public:
#if defined(PTXGEN_LEAKS_WATCHED)
  ForeignLeaks() { __lsan_disable(); }
  ~ForeignLeaks() { __lsan_enable(); }
#else
  ForeignLeaks() noexcept {}
  ~ForeignLeaks() {}
#endif
  ForeignLeaks(const ForeignLeaks&) = delete;
  ForeignLeaks& operator=(const ForeignLeaks&) = delete;
};

}  // namespace ptxgen::inline v0

#undef PTXGEN_LEAKS_WATCHED
