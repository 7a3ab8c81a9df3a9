// examples/engine/layer.hpp - a feed-forward block
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

/// Weights like those of a trained network: normally distributed around 0 with a standard deviation
/// of 1 / sqrt(rows) and a few outliers. Equal seeds give equal weights on every machine.
Matrix make_weights(std::string name, std::uint32_t rows, std::uint32_t columns,
                    std::uint64_t seed);

/// `hidden += down^T (up^T hidden)` on the host in double precision, the reference of the device's
/// result. `bound` gets the error bound of an f32 result for each element.
std::vector<double> reference_block(const Matrix& up, const Matrix& down,
                                    const std::vector<double>& hidden, std::vector<double>& bound);

/// The same on a device. Weights are uploaded once; `run` only queues work.
class Block {
 public:
  Block(const ptxgen::Context& context, const Matrix& up, const Matrix& down);

  /// The kernels of `run`, for Launcher::prepare.
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
