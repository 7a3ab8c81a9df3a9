// tests/runtime/objects_test.cpp - buffers, streams, events, graphs on the emulated driver
#include <catch2/catch.hpp>

#include <array>
#include <numeric>
#include <optional>
#include <random>
#include <thread>

#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/kernels/elementwise/elementwise.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/runtime/module/module.hpp"
#include "runtime/object_support.hpp"
#include "support/fault_table.hpp"
#include "support/harness.hpp"

namespace {

using namespace ptxgen;
using namespace ptxgen::test;

/// The emulated driver through a table that watches what lives.
struct Fixture {
  FaultTable watched{driver::emulated::table()};
  Device device = Device::open(watched.table(), 0, DeviceKind::Emulator);
};

std::vector<float> numbers(std::size_t count, float first = 1.0f) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

/// vadd, loaded, with buffers to run it on.
struct Sum {
  explicit Sum(const Context& context, std::uint32_t n = 1000)
      : count(n),
        a(context, numbers(n)),
        b(context, numbers(n, 10.0f)),
        c(context, n),
        vadd(context,
             Kernel<Ptr<f32>, Ptr<f32>, Ptr<f32>, u32>(Vadd{n}.build(ptx::target("sm_90")))) {}
  void launch(const Stream& stream) const {
    vadd.launch(stream, Vadd{count}.geometry(), a.address(), b.address(), c.address(), count);
  }
  [[nodiscard]] bool right() const {
    std::vector<float> sums(count);
    c.read(sums);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (sums[i] != 2 * static_cast<float>(i) + 11.0f) return false;
    }
    return true;
  }
  std::uint32_t count;
  Buffer<f32> a, b, c;
  LoadedKernel<Ptr<f32>, Ptr<f32>, Ptr<f32>, u32> vadd;
};

}  // namespace

TEST_CASE("buffers: data written is data read, copies check sizes") {
  Fixture f;
  {
    const Context context(f.device);
    const Stream stream(context);
    Buffer<f32> buffer(context, numbers(100));
    CHECK(buffer.size() == 100);
    CHECK(buffer.bytes() == 400);
    CHECK(buffer.address().value % 256 == 0);
    std::vector<float> back(100);
    buffer.read(back);
    CHECK(back == numbers(100));

    Buffer<f32> other(context, 100);
    other.copy(buffer);
    std::fill(back.begin(), back.end(), 0.0f);
    other.read(back, &stream);
    stream.synchronize();
    CHECK(back == numbers(100));
    other.fill_bytes(0xff);
    Buffer<u32> words(context, 3);
    words.fill_bytes(0xa5, &stream);
    stream.synchronize();
    std::vector<std::uint32_t> read(3);
    words.read(read);
    CHECK(read == std::vector<std::uint32_t>(3, 0xa5a5a5a5));

    const std::vector<float> wrong(99);
    CHECK(refusal([&] { buffer.write(wrong); }) ==
          "copy-size: the copy has 99 elements, the buffer 100 elements of 4 bytes; the counts "
          "must be equal");
    CHECK(contains(refusal([&] { buffer.write(wrong, &stream); }), "copy-size"));
    Buffer<f32> small(context, 1);
    CHECK(refusal([&] { buffer.copy(small); }) ==
          "copy-size: the copy has 1 element, the buffer 100 elements of 4 bytes; the counts must "
          "be equal");
    CHECK(contains(refusal([&] { small.read(back); }), "copy-size"));

    const DeviceSpan<f32> span = buffer;
    CHECK(span.bytes() == 400);
    const DeviceSpan<f32> part = span.subspan(90, 10);
    CHECK(part.address.value == buffer.address().value + 360);
    CHECK(part.subspan(10, 0).count == 0);
    CHECK(refusal([&] { static_cast<void>(span.subspan(91, 10)); }) ==
          "out-of-bounds: 10 elements from index 91 on are not within 100 elements");
    CHECK(contains(refusal([&] { static_cast<void>(span.subspan(~0ull, 2)); }), "out-of-bounds"));
  }
  CHECK(f.watched.leaked() == "");
}

TEST_CASE("buffers: parts are copied, and must be inside") {
  Fixture f;
  const Context context(f.device);
  Buffer<f32> buffer(context, std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7});
  const std::vector<float> part = {20, 30};
  buffer.write_part(2, part);
  const Stream stream(context);
  buffer.write_part(7, std::span(part).first(1), &stream);
  std::vector<float> all(8);
  buffer.read(all, &stream);
  stream.synchronize();
  CHECK(all == std::vector<float>{0, 1, 20, 30, 4, 5, 6, 20});
  std::vector<float> two(2);
  buffer.read_part(3, two);
  CHECK(two == std::vector<float>{30, 4});
  buffer.write_part(8, {});
  CHECK(contains(refusal([&] { buffer.write_part(7, part); }), "out-of-bounds"));
  CHECK(contains(refusal([&] { buffer.read_part(9, two); }), "out-of-bounds"));
}

TEST_CASE("buffers without elements") {
  Fixture f;
  const Context context(f.device);
  Buffer<f32> none(context, 0);
  Buffer<f32> nothing;
  none.write({});
  none.copy(nothing);
  none.fill_bytes(1);
  std::vector<float> empty;
  nothing.read(empty);
  CHECK(none.address().value == 0);
  CHECK(contains(refusal([&] { nothing.write(numbers(1)); }), "copy-size"));
}

TEST_CASE("everything moves and nothing is let go of twice") {
  Fixture f;
  {
    Context first(f.device);
    const driver::CUcontext handle = first.handle();
    Context context(std::move(first));
    CHECK(context.handle() == handle);

    Buffer<f32> a(context, numbers(10));
    const std::uint64_t address = a.address().value;
    Buffer<f32> b(std::move(a));
    CHECK(b.address().value == address);
    Buffer<f32> c(context, 5);
    c = std::move(b);
    CHECK(c.size() == 10);
    std::vector<float> back(10);
    c.read(back);
    CHECK(back == numbers(10));

    Stream stream(context);
    Stream other(context);
    const driver::CUstream queue = stream.handle();
    other = std::move(stream);
    CHECK(other.handle() == queue);
    other.synchronize();
    stream = Stream(context);
    stream.synchronize();

    Event event(context);
    other.record(event);
    Event later(context);
    later = std::move(event);
    later.synchronize();

    Module module = Module::load(context, kernel_text());
    Module again = Module::load(context, kernel_text());
    again = std::move(module);
    Function function = again.function("f");
    Function copy = function;
    function = std::move(copy);
    CHECK(function.name() == "f");

    Context reopened(f.device);
    context = std::move(reopened);
    context.synchronize();
  }
  CHECK(f.watched.leaked() == "");
}

TEST_CASE("a function keeps its module, its module the context") {
  Fixture f;
  {
    std::optional<Context> context(f.device);
    std::optional<Sum> sum(*context);
    std::optional<Stream> stream(*context);
    const Function function = sum->vadd.function();
    context.reset();
    sum->launch(*stream);
    stream->synchronize();
    CHECK(sum->right());
    const Sum second = std::move(*sum);
    sum.reset();
    second.launch(*stream);
    stream.reset();
    CHECK(function.resources().max_threads > 0);
    CHECK(second.right());
  }
  CHECK(f.watched.leaked() == "");
}

TEST_CASE("objects go in any order") {
  Fixture f;
  std::mt19937_64 random(test::seed());
  for (int round = 0; round < test::count(40, 1000); ++round) {
    struct Parts {
      std::optional<Context> context;
      std::optional<Stream> stream;
      std::optional<Event> event;
      std::optional<Sum> sum;
      std::optional<Graph> graph;
    } parts;
    parts.context.emplace(f.device);
    parts.stream.emplace(*parts.context);
    parts.event.emplace(*parts.context);
    parts.sum.emplace(*parts.context, 300);
    parts.stream->begin_capture();
    parts.sum->launch(*parts.stream);
    parts.graph = parts.stream->end_capture();
    parts.graph->launch(*parts.stream);
    parts.stream->record(*parts.event);
    std::array<int, 5> order = {0, 1, 2, 3, 4};
    std::shuffle(order.begin(), order.end(), random);
    for (const int which : order) {
      if (which == 0) parts.context.reset();
      if (which == 1) parts.stream.reset();
      if (which == 2) parts.event.reset();
      if (which == 3) parts.sum.reset();
      if (which == 4) parts.graph.reset();
    }
    REQUIRE(f.watched.leaked() == "");
  }
}

TEST_CASE("streams and events: order and time") {
  Fixture f;
  const Context context(f.device);
  const Stream first(context);
  const Stream second(context, Stream::Kind::Blocking, -1);
  const Event written(context);
  const Event untimed(context, false);
  Buffer<u32> buffer(context, 1 << 16);
  buffer.fill_bytes(1, &first);
  first.record(written);
  first.record(untimed);
  second.wait(written);
  std::vector<std::uint32_t> back(buffer.size());
  buffer.read(back, &second);
  second.synchronize();
  CHECK(std::count(back.begin(), back.end(), 0x01010101u) == 1 << 16);
  CHECK(first.done());
  CHECK(written.done());
  const Event later(context);
  second.record(later);
  later.synchronize();
  CHECK(later.milliseconds_since(written) >= 0);
  CHECK(refusal([&] { static_cast<void>(later.milliseconds_since(untimed)); }) ==
        "driver-call: cuEventElapsedTime: CUDA_ERROR_INVALID_HANDLE (400): invalid resource "
        "handle");
  CHECK(!first.capturing());

  const Stream host = Stream::borrowed(context, nullptr);
  buffer.fill_bytes(2, &host);
  host.synchronize();
}

TEST_CASE("objects of two contexts do not mix") {
  Fixture f;
  const int other_gpu = driver::emulated::add_gpu(*ptx::find_gpu("rtx4090"));
  const Context context(f.device);
  const Context other(Device::open(f.watched.table(), other_gpu, DeviceKind::Emulator));
  const Stream stream(other);
  Buffer<f32> here(context, 4);
  Buffer<f32> there(other, 4);
  CHECK(refusal([&] { here.fill_bytes(0, &stream); }) ==
        "other-context: the stream belongs to another context; use objects made from one Context");
  CHECK(contains(refusal([&] { here.copy(there); }), "other-context: the buffer"));
  const Sum sum(context);
  CHECK(contains(refusal([&] { sum.launch(stream); }), "other-context: the stream"));
  // The primary context is one, however often it is opened.
  const Context same(f.device);
  const Stream fine(same);
  sum.launch(fine);
  fine.synchronize();
  CHECK(sum.right());
}

TEST_CASE("graphs: captured once, launched often") {
  Fixture f;
  {
    const Context context(f.device);
    const Stream stream(context);
    std::optional<Graph> graph;
    std::optional<Sum> sum(context);
    stream.begin_capture();
    CHECK(stream.capturing());
    sum->c.fill_bytes(0xff, &stream);
    sum->launch(stream);
    graph = stream.end_capture();
    CHECK(!stream.capturing());
    CHECK(graph->nodes() == 2);
    for (int i = 0; i < 3; ++i) {
      sum->c.fill_bytes(0);
      graph->launch(stream);
      stream.synchronize();
      CHECK(sum->right());
    }
  }
  CHECK(f.watched.leaked() == "");
}

TEST_CASE("graphs: a second stream is drawn in, its kernel's module is kept") {
  Fixture f;
  const Context context(f.device);
  const Stream stream(context);
  const Stream side(context);
  const Event fork(context, false);
  const Event join(context, false);
  Buffer<f32> sums(context, 1000);
  std::optional<Sum> sum(context);
  stream.begin_capture();
  stream.record(fork);
  side.wait(fork);
  sum->launch(side);
  side.record(join);
  stream.wait(join);
  sums.copy(sum->c, &stream);
  const Graph graph = stream.end_capture();
  // Only the module may go: the memory is the caller's to keep.
  Buffer<f32> a = std::move(sum->a);
  Buffer<f32> b = std::move(sum->b);
  Buffer<f32> c = std::move(sum->c);
  sum.reset();
  CHECK(contains(f.watched.leaked(), "1 of Module"));
  graph.launch(stream);
  stream.synchronize();
  std::vector<float> back(1000);
  sums.read(back);
  CHECK(back[999] == 2009.0f);
}

TEST_CASE("a broken capture says so and leaves the stream usable") {
  Fixture f;
  const Context context(f.device);
  const Stream stream(context);
  const Sum sum(context);
  stream.begin_capture();
  CHECK(contains(refusal([&] { stream.synchronize(); }), "cuStreamSynchronize: CUDA_ERROR_STREAM"));
  const auto broken = error_of([&] { static_cast<void>(stream.end_capture()); });
  REQUIRE(broken);
  CHECK(broken->code == "capture");
  CHECK(broken->stage == Stage::Launch);
  CHECK(
      contains(broken->message, "cuStreamEndCapture: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED (901)"));
  CHECK(!stream.capturing());
  sum.launch(stream);
  stream.synchronize();
  CHECK(sum.right());
  stream.begin_capture();
  sum.launch(stream);
  CHECK(stream.end_capture().nodes() == 1);
}

TEST_CASE("a fault in a kernel: the finding in the error, and a new start") {
  Fixture f;
  {
    const Context context(f.device);
    const Stream stream(context);
    // The load is past the end, and past the pages of 2 MiB that are mapped for the buffer.
    Buffer<f32> buffer(context, 393216);
    const Function function = Module::load(context,
                                           kernel_text("ld.param.u64 %rd0, [p];\n"
                                                       "ld.global.f32 %f1, [%rd0+2162688];\n"
                                                       "st.global.f32 [%rd0], %f1;\nret;"),
                                           {}, "faulty.ptx")
                                  .function("f");
    const auto block = Kernel<Ptr<f32>>::pack(buffer.address());
    function.launch(stream, {}, {block.data(), block.size()});
    const auto fault = error_of([&] { stream.synchronize(); });
    REQUIRE(fault);
    CHECK(fault->code == "device-fault");
    CHECK(fault->driver_status == 700);
    CHECK(contains(fault->log, "out-of-bounds"));
    CHECK(context.poisoned());
    std::vector<float> back(393216);
    const auto later = error_of([&] { buffer.read(back); });
    REQUIRE(later);
    CHECK(later->code == "context-lost");
    CHECK(later->driver_status == 700);
    CHECK(contains(later->log, "out-of-bounds"));
  }
  Context::reset(f.device);
  const Context context(f.device);
  const Stream stream(context);
  const Sum sum(context);
  sum.launch(stream);
  stream.synchronize();
  CHECK(sum.right());
}

TEST_CASE("many bad modules and many lost contexts: the process lives, the codes differ") {
  Fixture f;
  CaughtLog log;
  const int rounds = test::count(50, 1000);
  for (int i = 0; i < rounds; ++i) {
    const Context context(f.device);
    const auto bad =
        error_of([&] { static_cast<void>(Module::load(context, kernel_text("add.f33 %r1;"))); });
    REQUIRE(bad);
    REQUIRE(bad->code == "rejected");
    const Function function = Module::load(context, kernel_text("trap;\nret;")).function("f");
    const std::array<std::byte, 8> block{};
    const Stream stream(context);
    function.launch(stream, {}, block);
    const auto lost = error_of([&] { context.synchronize(); });
    REQUIRE(lost);
    REQUIRE(lost->code == "device-fault");
  }
}

TEST_CASE("threads share a context, a module and a function") {
  Fixture f;
  {
    const Context context(f.device);
    const auto kernel = Vadd{256}.build(ptx::target("sm_90"));
    const Module module = Module::load(context, kernel.module());
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        const Stream stream(context);
        const Function vadd = module.function("vadd");
        for (int i = 0; i < 10; ++i) {
          const auto first = static_cast<float>(100 * t + i);
          const Buffer<f32> a(context, numbers(256, first));
          const Buffer<f32> b(context, numbers(256));
          Buffer<f32> c(context, 256);
          const auto block = Kernel<Ptr<f32>, Ptr<f32>, Ptr<f32>, u32>::pack(
              a.address(), b.address(), c.address(), 256u);
          vadd.launch(stream, Vadd{256}.geometry(), {block.data(), block.size()});
          stream.synchronize();
          std::vector<float> back(256);
          c.read(back);
          if (back[255] != first + 255.0f + 256.0f) ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
  }
  CHECK(f.watched.leaked() == "");
}
