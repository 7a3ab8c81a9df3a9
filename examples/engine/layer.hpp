// examples/engine/layer.hpp - a feed-forward block: its weights, and what it computes
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ptxgen/runtime/launch/launcher.hpp>

/// A weight matrix on the host: `[rows x columns]`, row-major, f32. A row belongs to an input.
struct Matrix {
  std::string name;
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  std::vector<float> values;
};

/// Weights as a trained network has them: normally distributed around 0 with a spread of
/// 1 / sqrt(rows), a few of them far outside. The same for the same seed, on every machine.
Matrix make_weights(std::string name, std::uint32_t rows, std::uint32_t columns,
                    std::uint64_t seed);

/// `hidden += down^T (up^T hidden)` in host memory and double precision: what the device's result
/// is compared with. `bound` gets how far an f32 result may lie from each element.
std::vector<double> reference_block(const Matrix& up, const Matrix& down,
                                    const std::vector<double>& hidden, std::vector<double>& bound);

/// The same on a device. Weights are uploaded once; `run` only queues work.
class Block {
 public:
  Block(const ptxgen::Context& context, const Matrix& up, const Matrix& down);

  /// The kernels that `run` will ask for, for Launcher::prepare.
  [[nodiscard]] std::vector<ptxgen::KernelRequest> kernels() const;
  /// Queues `hidden += down^T (up^T hidden)`.
  void run(const ptxgen::Launcher& launcher, ptxgen::DeviceSpan<ptxgen::f32> hidden,
           const ptxgen::Stream& stream) const;

 private:
  std::uint32_t width_ = 0;
  std::uint32_t inner_ = 0;
  ptxgen::Buffer<ptxgen::f32> up_, down_;
  ptxgen::Buffer<ptxgen::f32> inner_values_, change_;
};
