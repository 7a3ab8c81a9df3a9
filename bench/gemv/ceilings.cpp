// bench/gemv/ceilings.cpp - what no GEMV on a device can pass
#include "bench/gemv/ceilings.hpp"

#include <cstring>
#include <numeric>

#include "ptxgen/builder.hpp"
#include "ptxgen/kernels/elementwise/read_stream.hpp"
#include "ptxgen/support/error.hpp"
#include "support/count.hpp"

namespace ptxgen::gemv_bench {

namespace {

// Queues `work` `samples` times between two events; microseconds.
class Timer {
 public:
  Timer(const Context& context, const Lead& lead, std::size_t samples)
      : stream_(context), begin_(context), end_(context), lead_(lead), samples_(samples) {}

  // `before` is queued outside the timed part. Returns nothing if `check` fails once.
  template <class Before, class Work, class Check>
  [[nodiscard]] std::vector<double> time(Before&& before, Work&& work, Check&& check) const {
    std::vector<double> us;
    for (std::size_t i = 0; i < samples_; ++i) {
      before();
      stream_.record(begin_);
      work();
      stream_.record(end_);
      stream_.synchronize();
      us.push_back(double{end_.milliseconds_since(begin_)} * 1e3);
      if (!check()) return {};
    }
    return us;
  }
  [[nodiscard]] const ptxgen::Stream& stream() const noexcept { return stream_; }
  void lead() const { lead_.queue(stream_); }

 private:
  ptxgen::Stream stream_;
  Event begin_, end_;
  const Lead& lead_;
  std::size_t samples_;
};

Ceiling finished(std::string name, std::string doc, std::uint64_t bytes, std::vector<double> us,
                 double launches = 1) {
  Ceiling result;
  result.name = std::move(name);
  result.doc = std::move(doc);
  result.bytes = bytes;
  for (double& one : us) one /= launches;
  result.us = statistics_of(us);
  if (us.empty()) result.wrong = "the bytes that arrived have another sum";
  return result;
}

// Random memory, the sum of its words, and a buffer for the sums of a kernel that reads it.
struct Memory {
  Memory(const Context& context, const Arm& reader, std::uint64_t size, std::uint64_t seed)
      : bytes(context, size), sums(context, reader.slot_bytes) {
    const std::vector<std::byte> values = random_elements(ElementType::f32, size / 4, seed);
    bytes.write({reinterpret_cast<const std::uint8_t*>(values.data()), values.size()});
    std::vector<std::uint32_t> words(size / 4);
    std::memcpy(words.data(), values.data(), values.size());
    sum = ReadStream::reference(words);
    context.synchronize();
  }
  [[nodiscard]] bool sums_are_right() const {
    std::vector<std::uint8_t> raw(sums.size());
    sums.read(raw);
    std::vector<std::uint32_t> words(raw.size() / 4);
    std::memcpy(words.data(), raw.data(), raw.size());
    return std::accumulate(words.begin(), words.end(), 0u) == sum;
  }
  Buffer<b8> bytes, sums;
  std::uint32_t sum = 0;
};

std::string megabytes(std::uint64_t bytes) {
  return bytes >= 1'000'000 ? std::to_string(bytes / 1'000'000) + " MB" : count_text(bytes, "byte");
}

std::vector<Ceiling> memory_ceilings(const Context& context, const ArmMaker& maker,
                                     const Timer& timer, std::uint64_t seed,
                                     const CeilingSizes& sizes) {
  std::vector<Ceiling> found;
  {
    const Arm reader = maker.roofline_arm(sizes.stream_bytes);
    Memory from(context, reader, sizes.stream_bytes, seed);
    const auto read = [&](const Buffer<b8>& what) {
      reader.queue(timer.stream(), {from.sums.address().value, what.address().value, 0});
    };
    const auto spoil = [&] {
      from.sums.fill_bytes(0xff, &timer.stream());
      timer.lead();
    };
    found.push_back(finished(
        "read", "a kernel that only reads " + megabytes(sizes.stream_bytes), sizes.stream_bytes,
        timer.time(
            spoil, [&] { read(from.bytes); }, [&] { return from.sums_are_right(); })));
    Buffer<b8> to(context, sizes.stream_bytes);
    to.fill_bytes(0);
    found.push_back(
        finished("copy", "device to device, " + megabytes(sizes.stream_bytes) + " read and written",
                 2 * sizes.stream_bytes,
                 timer.time(
                     spoil, [&] { to.copy(from.bytes, &timer.stream()); },
                     [&] {
                       read(to);
                       timer.stream().synchronize();
                       return from.sums_are_right();
                     })));
  }
  const Arm reader = maker.roofline_arm(sizes.hot_bytes);
  Memory hot(context, reader, sizes.hot_bytes, seed);
  constexpr int kAgain = 16;
  const auto again = [&] {
    for (int i = 0; i < kAgain; ++i) {
      reader.queue(timer.stream(), {hot.sums.address().value, hot.bytes.address().value, 0});
    }
  };
  found.push_back(finished(
      "hot-read", "the same " + megabytes(sizes.hot_bytes) + " read again and again",
      sizes.hot_bytes, timer.time([] {}, again, [&] { return hot.sums_are_right(); }), kAgain));
  return found;
}

// A kernel that does nothing; `waits`: after its predecessor.
Function empty_kernel(const Context& context, const Launcher& launcher, bool waits) {
  const auto kernel = build_kernel(waits ? "empty_after" : "empty", context.device().target().name,
                                   params(), [&](KernelBuilder& k) {
                                     if (!waits) return;
                                     k.emit(ptx::Op::griddepcontrol, {ptx::Modifier::wait}, {});
                                   });
  return launcher.load(kernel.module(), kernel.name());
}

Ceiling graph_of_launches(const Timer& timer, const Function& kernel, const std::string& name,
                          const std::string& doc, std::uint32_t launches, bool programmatic) {
  LaunchGeometry geometry;
  geometry.block = {32, 1, 1};
  LaunchOptions options;
  options.programmatic = programmatic;
  kernel.launch(timer.stream(), geometry, {}, options);
  timer.stream().synchronize();
  timer.stream().begin_capture();
  for (std::uint32_t i = 0; i < launches; ++i) kernel.launch(timer.stream(), geometry, {}, options);
  const Graph graph = timer.stream().end_capture();
  return finished(
      name, doc, 0,
      timer.time([&] { timer.lead(); }, [&] { graph.launch(timer.stream()); }, [] { return true; }),
      launches);
}

}  // namespace

std::vector<Ceiling> measure_ceilings(const Context& context, const Launcher& launcher,
                                      const ArmMaker& maker, const Lead& lead, std::size_t samples,
                                      std::uint64_t seed, const CeilingSizes& sizes) {
  const Timer timer(context, lead, samples);
  std::vector<Ceiling> found = memory_ceilings(context, maker, timer, seed, sizes);

  const Function empty = empty_kernel(context, launcher, false);
  LaunchGeometry geometry;
  geometry.block = {32, 1, 1};
  const auto in_a_row = [&] {
    for (std::uint32_t i = 0; i < sizes.launches; ++i) empty.launch(timer.stream(), geometry, {});
  };
  found.push_back(finished("launch-stream", "an empty kernel, one after the other in a stream", 0,
                           timer.time([&] { timer.lead(); }, in_a_row, [] { return true; }),
                           sizes.launches));
  found.push_back(graph_of_launches(timer, empty, "launch-graph", "the same in a graph",
                                    sizes.launches, false));
  Ceiling& programmatic = found.emplace_back();
  programmatic.name = "launch-graph-pdl";
  programmatic.doc = "the same with programmatic dependent launch";
  try {
    programmatic = graph_of_launches(timer, empty_kernel(context, launcher, true),
                                     programmatic.name, programmatic.doc, sizes.launches, true);
  } catch (const Error& error) {
    // The first launch is outside the capture: it fails if the device lacks the feature.
    if (context.poisoned() || timer.stream().capturing()) throw;
    programmatic.missing = error.message;
  }
  return found;
}

}  // namespace ptxgen::gemv_bench
