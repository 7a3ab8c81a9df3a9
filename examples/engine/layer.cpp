// examples/engine/layer.cpp - a feed-forward block
#include "layer.hpp"

#include <cmath>

#include <ptxgen/kernels/elementwise/elementwise.hpp>
#include <ptxgen/kernels/gemv/coalesced.hpp>

namespace {

// splitmix64
std::uint64_t next_bits(std::uint64_t& state) {
  std::uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

// The sum of twelve uniform numbers: close enough to a normal distribution, without libm.
double normal(std::uint64_t& state) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += static_cast<double>(next_bits(state) >> 11) * 0x1p-53;
  return sum;
}

}  // namespace

Matrix make_weights(std::string name, std::uint32_t rows, std::uint32_t columns,
                    std::uint64_t seed) {
  Matrix matrix{std::move(name), rows, columns, {}};
  matrix.values.resize(std::size_t{rows} * columns);
  const double spread = 1 / std::sqrt(rows);
  for (float& value : matrix.values) {
    const bool outlier = next_bits(seed) % 4096 == 0;
    value = static_cast<float>(normal(seed) * spread * (outlier ? 20 : 1));
  }
  return matrix;
}

std::vector<double> reference_block(const Matrix& up, const Matrix& down,
                                    const std::vector<double>& hidden, std::vector<double>& bound) {
  // y = m^T x with the error of x and the error of the sum.
  const auto product = [](const Matrix& m, const std::vector<double>& x,
                          std::vector<double>& error) {
    std::vector<double> y(m.columns), inherited(m.columns), magnitude(m.columns);
    for (std::size_t i = 0; i < m.rows; ++i) {
      for (std::size_t j = 0; j < m.columns; ++j) {
        const double weight = m.values[i * m.columns + j];
        y[j] += weight * x[i];
        magnitude[j] += std::abs(weight) * (std::abs(x[i]) + error[i]);
        inherited[j] += std::abs(weight) * error[i];
      }
    }
    for (std::size_t j = 0; j < m.columns; ++j) {
      inherited[j] += ptxgen::gemv_error_bound(magnitude[j], m.rows);
    }
    error = std::move(inherited);
    return y;
  };
  std::vector<double> error = bound;
  const std::vector<double> inner = product(up, hidden, error);
  std::vector<double> result = product(down, inner, error);
  for (std::size_t j = 0; j < result.size(); ++j) {
    result[j] += hidden[j];
    bound[j] += error[j] + 0x1p-24 * (std::abs(result[j]) + error[j]);
  }
  return result;
}

Block::Block(const ptxgen::Context& context, const Matrix& up, const Matrix& down)
    : width_(up.rows),
      inner_(up.columns),
      up_(context, up.values),
      down_(context, down.values),
      inner_values_(context, up.columns),
      change_(context, down.columns) {}

std::vector<ptxgen::KernelRequest> Block::kernels() const {
  return {{"gemv", {width_, inner_}}, {"gemv", {inner_, width_}}, {"vadd", {width_}}};
}

void Block::run(const ptxgen::Launcher& launcher, ptxgen::DeviceSpan<ptxgen::f32> hidden,
                const ptxgen::Stream& stream) const {
  launcher.gemv(inner_values_, up_, hidden, width_, inner_, stream);
  launcher.gemv(change_, down_, inner_values_, inner_, width_, stream);
  launcher.launch(ptxgen::Vadd{.n = width_}, {.c = hidden, .a = hidden, .b = change_}, stream);
}
