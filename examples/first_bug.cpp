// examples/first_bug.cpp - two bugs that the emulated device finds
//
// In `total` all threads add to one element; `reverse` fills all but one element of its tile. On a
// GPU both run silently and give wrong numbers. The emulated device reports both with rule, C++
// line, PTX statement and thread. With PTXGEN_STRICT=1 the first call that waits throws.
#include <cstdio>
#include <vector>

#include "ptxgen/builder.hpp"
#include "ptxgen/runtime.hpp"

namespace {

using namespace ptxgen;

constexpr std::uint32_t kThreads = 64;

auto total_kernel(const Device& device) {
  return build_kernel("total", device.target().name,
                      params(param<Ptr<f32>>("out"), param<Ptr<f32>>("in")),
                      [](KernelBuilder& k, Ptr<f32> out, Ptr<f32> in) {
                        const Value<f32> element = in[k.tid_x()];
                        const Value<f32> sum = out[0];
                        out[0] = sum + element;  // every thread: the others' sums are lost
                      });
}

auto reverse_kernel(const Device& device) {
  return build_kernel("reverse", device.target().name,
                      params(param<Ptr<f32>>("out"), param<Ptr<f32>>("in")),
                      [](KernelBuilder& k, Ptr<f32> out, Ptr<f32> in) {
                        const SharedArray<f32> tile = k.shared<f32>(kThreads, "tile");
                        const Value<u32> t = k.tid_x();
                        k.if_(t < kThreads - 1, [&] {  // one too few
                          const Value<f32> element = in[t];
                          tile[t] = element;
                        });
                        k.bar_sync();
                        const Value<f32> element = tile[kThreads - 1 - t];
                        out[t] = element;
                      });
}

void run() {
  const Device device = Device::open("emulator");
  const Context context(device);
  const Stream stream(context);
  const Launcher launcher(context);

  const std::vector<float> ones(kThreads, 1.0f);
  const Buffer<f32> in(context, ones);
  Buffer<f32> out(context, kThreads);
  out.fill_bytes(0);
  const LaunchGeometry geometry{.grid = {1, 1, 1}, .block = {kThreads, 1, 1}};
  std::vector<float> host(kThreads);

  launcher.launch(total_kernel(device), geometry, stream, out, in);
  stream.synchronize();
  out.read(host);
  std::printf("total: %g, it should be %u\n", static_cast<double>(host[0]), kThreads);

  launcher.launch(reverse_kernel(device), geometry, stream, out, in);
  stream.synchronize();
  out.read(host);
  std::printf("reverse: the first element is %g, it should be 1\n", static_cast<double>(host[0]));
}

}  // namespace

int main() {
  try {
    run();
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
