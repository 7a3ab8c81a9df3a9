// tests/emulator/cuda/nvcc.hpp - CUDA files to PTX, kept in the build tree
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ptxgen::test {

/// One way to compile a file.
struct Build {
  unsigned sm = 80;
  std::string_view variant;  ///< "default", "O0", "debug"
  bool specific = false;     ///< sm_90a instead of sm_90
};

/// "sm_80", "sm_90a".
[[nodiscard]] std::string target_of(const Build& build);

/// The builds that a kernel can have which needs at least `min_sm`, in a fixed order.
[[nodiscard]] std::vector<Build> builds_from(unsigned min_sm);

/// The nvcc of this machine and the PTX that it made.
class Nvcc {
 public:
  /// Looks for nvcc as the library looks for ptxas.
  Nvcc();
  [[nodiscard]] bool found() const noexcept { return !program_.empty(); }
  /// Where was looked, for a reason to skip.
  [[nodiscard]] const std::string& searched() const noexcept { return searched_; }

  /// The file together_*.cu of kernels/ that includes `file`, or `file` itself: half a second goes
  /// into the toolkit's headers, so an everyday run compiles many files as one.
  [[nodiscard]] static std::string together(std::string_view file);

  /// PTX of a file of kernels/ for each build, compiled on as many threads as there are cores or
  /// taken from the build tree if source, options and compiler are the same as then; of two
  /// processes that need the same PTX one waits for the other's. Throws `Error` with the
  /// compiler's text.
  [[nodiscard]] std::vector<std::string> compile(std::string_view file,
                                                 const std::vector<Build>& builds) const;

 private:
  [[nodiscard]] std::string compile_one(std::string_view file, const std::string& source,
                                        const Build& build) const;

  std::string program_;
  std::string version_;
  std::string searched_;
};

}  // namespace ptxgen::test
