// src/cli/args/entry_name.hpp - the kernel that --entry means
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace ptxgen::cli {

/// The demangled C++ name, `scale(float*, int)` for `_Z5scalePfi`; other names unchanged.
[[nodiscard]] std::string demangled(const std::string& name);
/// Both forms of a name, where there are two: `scale(float*, int) (_Z5scalePfi)`.
[[nodiscard]] std::string both_forms(const std::string& name);

/// The index of the entry that `wanted` means: its name, else its C++ name with or without
/// parameters, template arguments and namespaces, else a piece of either. Empty `wanted` stands for
/// the only entry. `file` is the name of the module in messages. Throws `UsageError` when there is
/// none, or several.
[[nodiscard]] std::size_t entry_index(std::span<const std::string> names, const std::string& wanted,
                                      const std::string& file);

}  // namespace ptxgen::cli
