// src/cli/commands/layer_dump.hpp - outputs of layers into NumPy files
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "ptxgen/model/session.hpp"

namespace ptxgen::cli {

/// Tensors of a session that `--dump-layer` names, all positions in their order.
class LayerDumps {
 public:
  /// `arguments`: SPEC and FILE in turn. A SPEC is `N` (the output of layer N), `N:NAME`, or the
  /// `NAME` of a tensor of no layer. Throws `UsageError`.
  LayerDumps(const std::vector<std::string>& arguments, std::uint32_t layers);

  [[nodiscard]] bool empty() const noexcept { return dumps_.empty(); }
  /// Must outlive the session's work. Does nothing if it is empty.
  void attach(model::Session& session);
  /// After the first work of the session. Throws `UsageError` for a name that it has not seen.
  void check() const;
  /// Writes f32 [positions, columns] to each file.
  void write() const;

 private:
  struct Dump {
    std::string spec;
    std::string file;
    std::uint32_t layer = model::kNoLayer;
    std::string name;
    std::uint64_t rows = 0;
    std::uint64_t columns = 0;
    std::vector<float> values;
    std::set<std::string> known;  // names of this layer
  };
  void receive(const model::LayerTensor& tensor);

  std::vector<Dump> dumps_;
};

}  // namespace ptxgen::cli
