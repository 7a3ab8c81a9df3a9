// ptxgen/version.hpp - the library's version
#pragma once

namespace ptxgen::inline v0 {

/// The version of these headers. The build checks that it is the project's version.
inline constexpr int kVersionMajor = 0;
inline constexpr int kVersionMinor = 1;
inline constexpr int kVersionPatch = 0;
inline constexpr const char* kVersion = "0.1.0";

}  // namespace ptxgen::inline v0
