// src/kernels/host/elementwise.cpp - elementwise kernels on the host
#include <cmath>

#include "kernels/host/rows.hpp"
#include "ptxgen/kernels/elementwise/bias_activation.hpp"
#include "ptxgen/kernels/elementwise/elementwise.hpp"
#include "ptxgen/kernels/elementwise/elementwise_mul.hpp"
#include "ptxgen/kernels/elementwise/gelu.hpp"
#include "ptxgen/kernels/elementwise/residual_add.hpp"
#include "ptxgen/kernels/elementwise/silu.hpp"
#include "ptxgen/kernels/elementwise/swiglu.hpp"

namespace ptxgen::inline v0 {

namespace {

using Binary = void (*)(const float*, const float*, std::size_t, float*);

void binary(const HostRun& run, ElementType type, std::uint64_t count, const DeviceRange& a,
            const DeviceRange& b, const DeviceRange& out, Binary work) {
  const HostArray inputs[] = {{run, type, a}, {run, type, b}};
  map_on_host(run, count, inputs, {run, type, out},
              [&](const float* const(&from)[2], std::size_t size, float* to) {
                work(from[0], from[1], size, to);
              });
}

template <class F>
void unary(const HostRun& run, ElementType type, std::uint64_t count, const DeviceRange& in,
           const DeviceRange& out, const F& work) {
  const HostArray inputs[] = {{run, type, in}};
  map_on_host(
      run, count, inputs, {run, type, out},
      [&](const float* const(&from)[1], std::size_t size, float* to) { work(from[0], size, to); });
}

void gated(const HostRun& run, ElementType type, std::uint64_t count, const DeviceRange& gate,
           const DeviceRange& up, const DeviceRange& out) {
  const HostVectors& vectors = *run.vectors();
  const HostArray inputs[] = {{run, type, gate}, {run, type, up}};
  map_on_host(run, count, inputs, {run, type, out},
              [&](const float* const(&from)[2], std::size_t size, float* to) {
                float silu[kHostPiece];  // `to` may be `up`
                vectors.gate(1, from[0], size, silu);
                vectors.multiply(silu, from[1], size, to);
              });
}

constexpr float kSigmoidFactor = 1.702f;

}  // namespace

void Describe<Vadd>::host(const Vadd& k, const O& o, const HostRun& run) {
  binary(run, k.type, k.n, o.a, o.b, o.c, run.vectors()->add);
}

void Describe<ResidualAdd>::host(const K& k, const O& o, const HostRun& run) {
  binary(run, k.type, k.n, o.a, o.b, o.out, run.vectors()->add);
}

void Describe<BatchedResidualAdd>::host(const K& k, const O& o, const HostRun& run) {
  binary(run, k.type, kElements(k), o.a, o.b, o.out, run.vectors()->add);
}

void Describe<ElementwiseMul>::host(const K& k, const O& o, const HostRun& run) {
  binary(run, k.type, k.n, o.a, o.b, o.out, run.vectors()->multiply);
}

void Describe<Silu>::host(const K& k, const O& o, const HostRun& run) {
  unary(run, k.type, k.n, o.in, o.out, [&](const float* from, std::size_t size, float* to) {
    run.vectors()->gate(1, from, size, to);
  });
}

void Describe<Swiglu>::host(const K& k, const O& o, const HostRun& run) {
  gated(run, k.type, k.n, o.gate, o.up, o.out);
}

void Describe<BatchedSwiglu>::host(const K& k, const O& o, const HostRun& run) {
  gated(run, k.type, kElements(k), o.gate, o.up, o.out);
}

template <GeluForm kForm>
void Describe<Gelu<kForm>>::host(const K& k, const O& o, const HostRun& run) {
  unary(run, k.type, k.n, o.in, o.out, [&](const float* from, std::size_t size, float* to) {
    if constexpr (kForm == GeluForm::Sigmoid) {
      run.vectors()->gate(kSigmoidFactor, from, size, to);
    } else if constexpr (kForm == GeluForm::Tanh) {
      run.vectors()->gelu_tanh(from, size, to);
    } else {
      // Highway has no erf.
      for (std::size_t i = 0; i < size; ++i) {
        const double x = from[i];
        to[i] = static_cast<float>(x / 2 * (1 + std::erf(x / std::sqrt(2.0))));
      }
    }
  });
}
template void Describe<GeluErf>::host(const GeluErf&, const GeluErf::Operands&, const HostRun&);
template void Describe<GeluTanh>::host(const GeluTanh&, const GeluTanh::Operands&, const HostRun&);
template void Describe<GeluSigmoid>::host(const GeluSigmoid&, const GeluSigmoid::Operands&,
                                          const HostRun&);

void Describe<BiasActivation>::host(const K& k, const O& o, const HostRun& run) {
  const HostVectors& vectors = *run.vectors();
  const float* const bias = run.at<float>(o.bias);
  const HostArray out(run, k.type, o.out);
  run.for_parts(k.n, 2 * bytes(k.type), kHostPiece, [&](std::uint64_t begin, std::uint64_t end) {
    float space[kHostPiece];
    for (std::uint64_t i = begin; i < end;) {
      const std::uint64_t first = i % k.bias_size;
      const auto size = static_cast<std::size_t>(
          std::min({std::uint64_t{kHostPiece}, end - i, k.bias_size - first}));
      vectors.add(out.read(vectors, i, size, space), bias + first, size, space);
      if (k.activation == Activation::Relu) vectors.relu(space, size, space);
      if (k.activation == Activation::GeluSigmoid) {
        vectors.gate(kSigmoidFactor, space, size, space);
      }
      out.write(vectors, i, size, space);
      i += size;
    }
  });
}

}  // namespace ptxgen::inline v0
