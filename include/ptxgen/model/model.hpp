// ptxgen/model/model.hpp - the weights of a decoder on a device
#pragma once

#include <cstdint>
#include <string>

#include "ptxgen/model/config.hpp"
#include "ptxgen/model/gguf.hpp"
#include "ptxgen/runtime/launch/launcher.hpp"
#include "ptxgen/support/hidden.hpp"

namespace ptxgen::inline v0::model {

/// Called from time to time while weights are copied to the device, by the constructor's thread.
struct LoadProgress {
  void (*report)(void* user, std::uint64_t bytes, std::uint64_t total) = nullptr;
  void* user = nullptr;
};

struct ModelOptions {
  LauncherOptions launcher;
  LoadProgress progress;
  /// On an emulated device, the GEMV plans of the GPU that it stands for. Otherwise plans with more
  /// rows for each warp are used there, unless `launcher` or its settings have plans: registers do
  /// not matter to the emulator, and preparing x costs it most.
  bool gpu_plans = false;
  /// Matrices of q4_0, q4_1, q5_0, q5_1, q8_0 and q6_k are repacked (`repack_row`) as they are
  /// copied to the device, for loads of 16 bytes; an output matrix that is the embedding is there
  /// in both forms. Sums are then added in another order: logits are within the same bound.
  bool repack = false;
};

/// A decoder whose weights are on a device, once, as stored in the file or repacked. Sessions share
/// it.
///
/// The file is memory-mapped; its pages are released as they are copied, so the host holds little
/// more than the metadata.
///
/// Errors: as `gguf::File` and `ModelConfig::read`; "out-of-memory" (Stage::Device) with the bytes
/// that the model needs.
///
/// Threads: const members from any thread. `context` must outlive the model and must not be moved;
/// the model must outlive its sessions.
class Model {
 public:
  Model(const Context& context, const std::string& path, ModelOptions options = {});
  /// Takes the file.
  Model(const Context& context, gguf::File file, ModelOptions options = {});
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  [[nodiscard]] const ModelConfig& config() const noexcept;
  [[nodiscard]] const gguf::File& file() const noexcept;
  [[nodiscard]] const Context& context() const noexcept;
  [[nodiscard]] const Launcher& launcher() const noexcept;
  /// Of all tensors on the device.
  [[nodiscard]] std::uint64_t device_bytes() const noexcept;
  /// Of the weights that one token reads: all but the embedding, unless it is the output matrix.
  [[nodiscard]] std::uint64_t bytes_per_token() const noexcept;
  /// Hash of the shape and of the names, types and sizes of all tensors; not of their values.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept;

 private:
  friend class Session;
  struct State;
  Hidden<State> state_;
};

}  // namespace ptxgen::inline v0::model
