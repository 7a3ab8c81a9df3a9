// src/support/toolkit.hpp - locating the parts of the CUDA toolkit
#pragma once

#include <string>
#include <vector>

#include "ptxgen/support/settings.hpp"
#include "support/dynamic_library.hpp"

namespace ptxgen::inline v0 {

[[nodiscard]] LibrarySearch libcuda_search(const Settings& settings);
[[nodiscard]] LibrarySearch nvjitlink_search(const Settings& settings);
[[nodiscard]] LibrarySearch nvrtc_search(const Settings& settings);
[[nodiscard]] LibrarySearch cublas_search(const Settings& settings);

/// A program that was found, or the places where it is not.
struct FoundProgram {
  std::string path;  ///< empty: not found
  std::vector<SearchAttempt> attempts;
};

/// Looks for an executable file: `override_path` (a file or a folder; if set nothing else),
/// `cuda_path`/bin, then PATH and the toolkit's usual folders. `variable` names the setting of
/// `override_path` in messages.
[[nodiscard]] FoundProgram find_program(const Settings& settings, const std::string& name,
                                        const std::string& variable = {},
                                        const std::string& override_path = {});

/// What `program --version` says after "release": "13.0, V13.0.88" as "13.0.88". Empty when the
/// program says no such thing. Throws as `run_program` does.
[[nodiscard]] std::string cuda_program_version(const std::string& program);

}  // namespace ptxgen::inline v0
