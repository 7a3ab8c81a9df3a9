// examples/engine/main.cpp - decodes tokens with ptxgen as an engine would
//
// Opens a device, uploads weights, loads all kernels ahead of time, captures one decoding step as a
// graph, launches it for each token, and checks every number of the result. Runs on a GPU if there
// is one, else on the emulated device (PTXGEN_DEVICE selects it).
#include <cmath>
#include <cstdio>
#include <vector>

#include <ptxgen/runtime/launch/launcher.hpp>
#include <ptxgen/support/error.hpp>

#include "layer.hpp"

namespace {

using namespace ptxgen;

constexpr std::uint32_t kWidth = 384;
constexpr std::uint32_t kInner = 1000;
constexpr int kLayers = 2;
constexpr int kTokens = 3;

struct Model {
  std::vector<Matrix> up, down;
};

Model make_model() {
  Model model;
  for (int i = 0; i < kLayers; ++i) {
    const std::string layer = "layer" + std::to_string(i);
    const auto seed = static_cast<std::uint64_t>(2 * i);
    model.up.push_back(make_weights(layer + ".up", kWidth, kInner, seed + 1));
    model.down.push_back(make_weights(layer + ".down", kInner, kWidth, seed + 2));
  }
  return model;
}

std::vector<float> embedding(int token) {
  std::vector<float> values(kWidth);
  for (std::size_t i = 0; i < kWidth; ++i) {
    values[i] = static_cast<float>(std::sin(0.1 * static_cast<double>(i) + token));
  }
  return values;
}

// Elements whose error exceeds the bound of the sums' roundings.
std::size_t wrong_elements(const Model& model, int token, const std::vector<float>& result) {
  const std::vector<float> start = embedding(token);
  std::vector<double> exact(start.begin(), start.end());
  std::vector<double> bound(kWidth, 0.0);
  for (int i = 0; i < kLayers; ++i) {
    const auto layer = static_cast<std::size_t>(i);
    exact = reference_block(model.up[layer], model.down[layer], exact, bound);
  }
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < kWidth; ++i) wrong += !(std::abs(result[i] - exact[i]) <= bound[i]);
  return wrong;
}

// An invalid call is refused before anything is queued, with an error message: the engine goes on.
bool mistakes_are_refused(const Launcher& launcher, const Buffer<f32>& hidden,
                          const Stream& stream) {
  try {
    launcher.gemv(hidden, hidden, hidden, kWidth, kWidth, stream);
  } catch (const Error& error) {
    std::printf("refused as it should be: [%s] %s\n", error.code.c_str(), error.message.c_str());
    return error.code == "buffer-size";
  }
  return false;
}

int decode() {
  const Device device = Device::open();
  std::printf("device: %s (%s)\n", device.info().name.c_str(), device.info().target.c_str());
  const Context context(device);
  const Stream stream(context);
  const Launcher launcher(context);

  const Model model = make_model();
  std::vector<Block> blocks;
  std::vector<KernelRequest> kernels;
  for (std::size_t i = 0; i < kLayers; ++i) {
    const Block& block = blocks.emplace_back(context, model.up[i], model.down[i]);
    const std::vector<KernelRequest> wanted = block.kernels();
    kernels.insert(kernels.end(), wanted.begin(), wanted.end());
  }

  // All compiling happens here, none while tokens are decoded.
  launcher.prepare(kernels, {[](void*, std::size_t done, std::size_t total) {
                               std::printf("kernel %zu of %zu is ready\n", done, total);
                             },
                             nullptr});

  Buffer<f32> hidden(context, kWidth);
  stream.begin_capture();
  for (const Block& block : blocks) block.run(launcher, hidden, stream);
  const Graph step = stream.end_capture();
  std::printf("one step is a graph of %zu launches\n", step.nodes());

  std::size_t wrong = 0;
  std::vector<float> result(kWidth);
  for (int token = 0; token < kTokens; ++token) {
    const std::vector<float> start = embedding(token);
    hidden.write(start, &stream);
    step.launch(stream);
    hidden.read(result, &stream);
    stream.synchronize();
    wrong += wrong_elements(model, token, result);
    std::printf("token %d: first element %.6f\n", token, static_cast<double>(result[0]));
  }

  const bool refused = mistakes_are_refused(launcher, hidden, stream);
  const CacheStatistics cache = launcher.cache().statistics();
  std::printf("%zu wrong elements, %llu modules, %llu compiled since prepare\n", wrong,
              static_cast<unsigned long long>(cache.modules),
              static_cast<unsigned long long>(cache.compiles_since_prepare));
  return wrong == 0 && refused && cache.misses_since_prepare == 0 ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return decode();
  } catch (const Error& error) {
    // An engine would log stage, code, call site, PTX lines and the driver's log.
    std::fprintf(stderr, "engine: %s\n", error.what());
    return 1;
  }
}
